// tandem/linalg/tiled_data.cpp: registers the tiles.
#include "tandem/linalg/tiled_data.hpp"

#include <fmt/format.h>

#include "tandem/base/blas_threads.hpp"

namespace tandem::linalg {

template <Scalar T>
TiledData<T>::TiledData(Runtime& rt, const std::string& name, TileMatrix<T>& matrix)
    : matrix_(&matrix), tiles_(matrix.row_tiles() * matrix.col_tiles()) {
  base::restrict_blas_threads();
  for (std::size_t j = 0; j < col_tiles(); ++j)
    for (std::size_t i = 0; i < row_tiles(); ++i)
      if (stores(i, j)) {
        const std::string tile = fmt::format("{}({},{})", name, i, j);
        tiles_[i + j * row_tiles()] = matrix.shape().in_runtime
                                          ? rt.matrix<T>(tile, matrix.tile_rows(i), matrix.tile_cols(j), place(i, j))
                                          : rt.data(tile, matrix.tile(i, j), place(i, j));
      }
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
