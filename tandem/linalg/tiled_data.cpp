// tandem/linalg/tiled_data.cpp: registers the tiles.
#include "tandem/linalg/tiled_data.hpp"

#include <fmt/format.h>

#include <utility>

#include "tandem/base/blas_threads.hpp"

namespace tandem::linalg {

template <Scalar T>
TiledData<T>::TiledData(Runtime& rt, const std::string& name, TileMatrix<T>& matrix) : matrix_(&matrix) {
  base::restrict_blas_threads();
  if (matrix.shape().in_runtime) {
    TileGrid grid{.rows = matrix.rows(), .cols = matrix.cols(), .tile_rows = matrix.tile_height(), .tile_cols = matrix.tile_size()};
    if (const Distribution distribution = matrix.distribution(); distribution.several())
      grid.owner = [distribution](std::size_t i, std::size_t j) { return distribution.owner(i, j); };
    made_when_used_ = rt.tiles<T>(name, std::move(grid));
    return;
  }
  tiles_.resize(row_tiles() * col_tiles());
  for (std::size_t j = 0; j < col_tiles(); ++j)
    for (std::size_t i = 0; i < row_tiles(); ++i)
      if (stores(i, j))
        tiles_[i + j * row_tiles()] = rt.data(fmt::format("{}({},{})", name, i, j), matrix.tile(i, j), place(i, j));
}

template <Scalar T>
DataOptions TiledData<T>::place(std::size_t i, std::size_t j) const {
  DataOptions options;
  if (matrix_->distribution().several()) options.owner = matrix_->distribution().owner(i, j);
  return options;
}

template class TiledData<float>;
template class TiledData<double>;
template class TiledData<std::complex<float>>;
template class TiledData<std::complex<double>>;

}  // namespace tandem::linalg
