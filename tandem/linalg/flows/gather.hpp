// tandem/linalg/flows/gather.hpp: a distributed matrix in one piece, on every rank.
#pragma once

#include "tandem/api/runtime.hpp"
#include "tandem/linalg/kernels/lacpy.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// Copies the stored tiles, diagonal tiles of a triangle only in the triangle, to a LAPACK matrix of the same
/// dimensions; on every rank, after the tasks that write them.
template <Scalar T>
void gather(Runtime& rt, const TiledData<T>& a, MatrixView<T> to) {
  const TileMatrix<T>& matrix = a.matrix();
  const std::size_t nb = matrix.tile_size();
  for (std::size_t j = 0; j < a.col_tiles(); ++j)
    for (std::size_t i = 0; i < a.row_tiles(); ++i)
      if (a.stores(i, j) && matrix.distribution().several()) rt.fetch_everywhere(a(i, j));
  for (std::size_t j = 0; j < a.col_tiles(); ++j) {
    for (std::size_t i = 0; i < a.row_tiles(); ++i) {
      if (!a.stores(i, j)) continue;
      auto tile = rt.acquire(read(a(i, j)));
      const MatrixView<T> block = to.block(i * nb, j * nb, tile->rows, tile->cols);
      kernels::lacpy(i == j ? matrix.uplo() : Uplo::general, *tile, block);
    }
  }
}

}  // namespace tandem::linalg
