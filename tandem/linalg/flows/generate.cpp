// tandem/linalg/flows/generate.cpp: one task per tile calls the generator.
#include "tandem/linalg/flows/generate.hpp"

#include "tandem/api/codelet.hpp"

namespace tandem::linalg::internal {

template <Scalar T>
void submit_fill(Runtime& rt, const TileFill<T>& fill, TiledData<T>& a) {
  static const Codelet generate("generate", [](const TileFill<T>& elements, TilePosition at, MatrixView<T> tile) {
    elements.fill(elements.generator.get(), at, tile);
  });
  const std::size_t height = a.matrix().tile_height(), width = a.matrix().tile_size();
  for (std::size_t j = 0; j < a.col_tiles(); ++j)
    for (std::size_t i = 0; i < a.row_tiles(); ++i)
      if (a.stores(i, j)) rt.submit(generate, fill, TilePosition{i * height, j * width}, write(a(i, j)));
}

template void submit_fill<float>(Runtime&, const TileFill<float>&, TiledData<float>&);
template void submit_fill<double>(Runtime&, const TileFill<double>&, TiledData<double>&);
template void submit_fill<std::complex<float>>(Runtime&, const TileFill<std::complex<float>>&,
                                               TiledData<std::complex<float>>&);
template void submit_fill<std::complex<double>>(Runtime&, const TileFill<std::complex<double>>&,
                                                TiledData<std::complex<double>>&);

}  // namespace tandem::linalg::internal
