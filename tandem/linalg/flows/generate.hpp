// tandem/linalg/flows/generate.hpp: fills a tiled matrix from a generator, one task per tile.
#pragma once

#include <complex>
#include <memory>

#include "tandem/linalg/generators.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

namespace internal {

/// A generator with its type erased, so that the code that submits the tasks is compiled once per precision. All tasks
/// of a call share the generator.
template <Scalar T>
struct TileFill {
  std::shared_ptr<const void> generator;
  void (*fill)(const void* generator, TilePosition at, MatrixView<T> tile) = nullptr;
};

template <Scalar T>
void submit_fill(Runtime& rt, const TileFill<T>& fill, TiledData<T>& a);

extern template void submit_fill<float>(Runtime&, const TileFill<float>&, TiledData<float>&);
extern template void submit_fill<double>(Runtime&, const TileFill<double>&, TiledData<double>&);
extern template void submit_fill<std::complex<float>>(Runtime&, const TileFill<std::complex<float>>&,
                                                      TiledData<std::complex<float>>&);
extern template void submit_fill<std::complex<double>>(Runtime&, const TileFill<std::complex<double>>&,
                                                       TiledData<std::complex<double>>&);

}  // namespace internal

/// Submits a_ij := generator.element(i, j) for all elements of stored tiles. The generator is copied once and lives
/// until its tasks have ended; any type with `element<T>(i, j)` will do, and several threads call it at once. The
/// worker that fills a tile is the first to touch its memory. Submitting thread.
template <Scalar T, class G>
  requires Generator<G, T>
void submit_generate(Runtime& rt, const G& generator, TiledData<T>& a) {
  internal::submit_fill<T>(rt,
                           {std::make_shared<const G>(generator),
                            [](const void* elements, TilePosition at, MatrixView<T> tile) {
                              generate_tile(*static_cast<const G*>(elements), at, tile);
                            }},
                           a);
}

/// Fills and waits.
template <Scalar T, class G>
  requires Generator<G, T>
void generate(Runtime& rt, const G& generator, TiledData<T>& a) {
  submit_generate(rt, generator, a);
  rt.wait();
}

}  // namespace tandem::linalg
