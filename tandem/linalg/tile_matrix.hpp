// tandem/linalg/tile_matrix.hpp: a matrix in tiles, square by default, each contiguous in memory.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tandem/base/assert.hpp"
#include "tandem/linalg/distribution.hpp"
#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg {

/// Dimensions of a tiled matrix. `uplo` lower or upper stores only the tiles that have elements in that triangle. With
/// a `distribution` each tile has memory only on the rank that owns it; `rank` is this rank.
struct TileShape {
  std::size_t rows = 0;    ///< of the matrix
  std::size_t cols = 0;    ///< of the matrix
  std::size_t tile = 256;  ///< nb: rows and columns of a tile; the last ones of the matrix may have fewer
  Uplo uplo = Uplo::general;       ///< which tiles are stored
  Distribution distribution = {};  ///< which rank owns which tile
  std::uint32_t rank = 0;          ///< of this process
  std::size_t tile_rows = 0;       ///< rows of a tile that is not square (nb: its columns; only for general); 0: nb
  /// The tiles have no memory of their own: `TiledData` leaves it to the runtime, which lets tiles go to a file where
  /// main memory is limited (option memory). A tile has no value before a task writes it, and tasks alone reach it.
  bool in_runtime = false;
};

namespace internal {

/// Uninitialised memory, aligned for vectors and, when it is large, for huge pages, which it requests: a column of a
/// tile is often one small page, and a kernel crosses hundreds of columns. The first thread that writes a page
/// allocates it. Throws std::bad_alloc.
std::shared_ptr<std::byte> allocate_tiles(std::size_t bytes);

}  // namespace internal

/// An m x n matrix of `row_tiles()` x `col_tiles()` tiles. Tile (i, j) is column-major with ld = its rows, at an
/// address that is a multiple of 64 bytes; elements are uninitialised until written. Moving is cheap; there is no copy
/// (use lacpy). Not synchronised: tasks on different tiles may run at once. The addresses of tiles do not change while
/// the matrix lives, also when it is moved.
template <Scalar T>
class TileMatrix {
 public:
  TileMatrix() : TileMatrix(TileShape{}) {}

  /// Asserts tile > 0, and a square matrix of square tiles unless uplo is general. Throws std::bad_alloc.
  explicit TileMatrix(TileShape shape);

  TileMatrix(TileMatrix&&) noexcept = default;             ///< addresses of tiles do not change
  TileMatrix& operator=(TileMatrix&&) noexcept = default;  ///< addresses of tiles do not change

  /// How `from_lapack` cuts a matrix into tiles.
  struct Tiling {
    std::size_t tile = 256;     ///< rows and columns of a tile
    Uplo uplo = Uplo::general;  ///< which tiles are stored
  };
  /// A tiled copy of a LAPACK matrix; with lower or upper, of its tiles in that triangle (whole diagonal tiles).
  static TileMatrix from_lapack(MatrixView<const T> a, Tiling tiling);

  /// Copies the stored tiles of this rank to a LAPACK matrix of the same dimensions; of the diagonal tiles of a
  /// triangle, only the triangle. Asserts that the tiles are not the runtime's.
  void to_lapack(MatrixView<T> a) const;

  const TileShape& shape() const noexcept { return shape_; }  ///< all dimensions
  std::size_t rows() const noexcept { return shape_.rows; }  ///< of the matrix
  std::size_t cols() const noexcept { return shape_.cols; }  ///< of the matrix
  std::size_t tile_size() const noexcept { return shape_.tile; }  ///< columns of a tile, and rows of a square one
  Uplo uplo() const noexcept { return shape_.uplo; }  ///< which tiles are stored
  std::size_t tile_height() const noexcept {
    return shape_.tile_rows == 0 ? shape_.tile : shape_.tile_rows;
  }  ///< rows of a tile
  bool has_square_tiles() const noexcept {
    return tile_height() == tile_size();
  }  ///< rows and columns of a tile are alike
  std::size_t row_tiles() const noexcept {
    return (shape_.rows + tile_height() - 1) / tile_height();
  }  ///< number of tile rows
  std::size_t col_tiles() const noexcept {
    return (shape_.cols + shape_.tile - 1) / shape_.tile;
  }  ///< number of tile columns

  /// Rows of the tiles of tile row i: the last ones may have fewer.
  std::size_t tile_rows(std::size_t i) const noexcept { return extent(shape_.rows, i, tile_height()); }
  /// Columns of the tiles of tile column j: the last ones may have fewer.
  std::size_t tile_cols(std::size_t j) const noexcept { return extent(shape_.cols, j, shape_.tile); }

  /// Whether tile (i, j) is stored: of a triangle, only tiles with elements in it.
  bool stores(std::size_t i, std::size_t j) const noexcept {
    return i < row_tiles() && j < col_tiles() &&
           (shape_.uplo == Uplo::general || (shape_.uplo == Uplo::lower ? i >= j : i <= j));
  }

  const Distribution& distribution() const noexcept { return shape_.distribution; }  ///< which rank owns which tile
  /// Whether tile (i, j), which is stored, has its memory here.
  bool is_here(std::size_t i, std::size_t j) const noexcept {
    return !shape_.distribution.several() || shape_.distribution.owner(i, j) == shape_.rank;
  }

  /// Tile (i, j), which must be stored. A tile of another rank, or of the runtime, has dimensions and no memory.
  MatrixView<T> tile(std::size_t i, std::size_t j) noexcept {
    return {data(i, j), tile_rows(i), tile_cols(j), tile_rows(i)};
  }
  /// Tile (i, j), for reading only.
  MatrixView<const T> tile(std::size_t i, std::size_t j) const noexcept {
    return {data(i, j), tile_rows(i), tile_cols(j), tile_rows(i)};
  }

  /// Memory of this rank's stored tiles.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  static std::size_t extent(std::size_t size, std::size_t index, std::size_t tile) noexcept {
    const std::size_t first = index * tile;
    TANDEM_DEBUG_ASSERT(first < size);
    return size - first < tile ? size - first : tile;
  }

  T* data(std::size_t i, std::size_t j) const noexcept {
    TANDEM_DEBUG_ASSERT(stores(i, j));
    if (!is_here(i, j) || shape_.in_runtime) return nullptr;
    return reinterpret_cast<T*>(memory_.get() + offsets_[i + j * row_tiles()]);
  }

  TileShape shape_;
  std::vector<std::size_t> offsets_;  ///< of tile (i, j) in bytes, at i + j * row_tiles()
  std::size_t bytes_ = 0;
  std::shared_ptr<std::byte> memory_;
};

extern template class TileMatrix<float>;
extern template class TileMatrix<double>;
extern template class TileMatrix<std::complex<float>>;
extern template class TileMatrix<std::complex<double>>;

}  // namespace tandem::linalg
