// tandem/linalg/tile_matrix.cpp: memory of tiles, and conversion from and to LAPACK's layout.
#include "tandem/linalg/tile_matrix.hpp"

#include <new>

#include "tandem/base/large_memory.hpp"
#include "tandem/linalg/kernels/lacpy.hpp"

namespace tandem::linalg {

namespace internal {

std::shared_ptr<std::byte> allocate_tiles(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  auto memory = base::allocate_large(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace internal

template <Scalar T>
TileMatrix<T>::TileMatrix(TileShape shape) : shape_(shape) {
  TANDEM_ASSERT(shape.tile > 0);
  TANDEM_ASSERT(shape.uplo == Uplo::general || (shape.rows == shape.cols && has_square_tiles()));
  constexpr std::size_t alignment = 64;
  offsets_.assign(row_tiles() * col_tiles(), 0);
  for (std::size_t j = 0; j < col_tiles(); ++j) {
    for (std::size_t i = 0; i < row_tiles(); ++i) {
      if (!stores(i, j) || !is_here(i, j) || shape_.in_runtime) continue;
      offsets_[i + j * row_tiles()] = bytes_;
      const std::size_t tile_bytes = tile_rows(i) * tile_cols(j) * sizeof(T);
      bytes_ += (tile_bytes + alignment - 1) / alignment * alignment;
    }
  }
  memory_ = internal::allocate_tiles(bytes_);
}

template <Scalar T>
TileMatrix<T> TileMatrix<T>::from_lapack(MatrixView<const T> a, Tiling tiling) {
  TileMatrix tiled({.rows = a.rows, .cols = a.cols, .tile = tiling.tile, .uplo = tiling.uplo});
  for (std::size_t j = 0; j < tiled.col_tiles(); ++j) {
    for (std::size_t i = 0; i < tiled.row_tiles(); ++i) {
      if (!tiled.stores(i, j)) continue;
      const MatrixView<T> tile = tiled.tile(i, j);
      kernels::lacpy(Uplo::general, a.block(i * tiling.tile, j * tiling.tile, tile.rows, tile.cols), tile);
    }
  }
  return tiled;
}

template <Scalar T>
void TileMatrix<T>::to_lapack(MatrixView<T> a) const {
  TANDEM_ASSERT(a.rows == rows() && a.cols == cols() && !shape_.in_runtime);
  for (std::size_t j = 0; j < col_tiles(); ++j) {
    for (std::size_t i = 0; i < row_tiles(); ++i) {
      if (!stores(i, j) || !is_here(i, j)) continue;
      const MatrixView<const T> from = tile(i, j);
      const MatrixView<T> to = a.block(i * tile_height(), j * tile_size(), from.rows, from.cols);
      kernels::lacpy(i == j ? uplo() : Uplo::general, from, to);
    }
  }
}

template class TileMatrix<float>;
template class TileMatrix<double>;
template class TileMatrix<std::complex<float>>;
template class TileMatrix<std::complex<double>>;

}  // namespace tandem::linalg
