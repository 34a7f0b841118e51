// tandem/linalg/flows/generate.hpp: fills a tiled matrix from a generator, one task per tile.
#pragma once

#include "tandem/api/codelet.hpp"
#include "tandem/linalg/generators.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// Submits a_ij := generator.element(i, j) for all elements of stored tiles. The generator is copied into the tasks; any type
/// with `element<T>(i, j)` will do, and it is called from several threads. Tiles are touched first by the workers that fill them.
template <Scalar T, class G>
  requires Generator<G, T>
void submit_generate(Runtime& rt, const G& generator, TiledData<T>& a) {
  static const Codelet generate("generate", [](const G& elements, TilePosition at, MatrixView<T> tile) {
    generate_tile(elements, at, tile);
  });
  const std::size_t height = a.matrix().tile_height(), width = a.matrix().tile_size();
  for (std::size_t j = 0; j < a.col_tiles(); ++j)
    for (std::size_t i = 0; i < a.row_tiles(); ++i)
      if (a.stores(i, j)) rt.submit(generate, generator, TilePosition{i * height, j * width}, write(a(i, j)));
}

/// Fills and waits.
template <Scalar T, class G>
  requires Generator<G, T>
void generate(Runtime& rt, const G& generator, TiledData<T>& a) {
  submit_generate(rt, generator, a);
  rt.wait();
}

}  // namespace tandem::linalg
