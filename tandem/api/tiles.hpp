// tandem/api/tiles.hpp: a matrix in tiles whose data are registered at their first use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "tandem/api/data.hpp"

namespace tandem {

class Runtime;

/// The tiles of a matrix: their number, size and owners.
struct TileGrid {
  std::size_t rows = 0;         ///< rows of the matrix
  std::size_t cols = 0;         ///< columns of the matrix
  std::size_t tile_rows = 256;  ///< rows of a tile; the last tile row may have fewer
  std::size_t tile_cols = 256;  ///< columns of a tile; the last tile column may have fewer
  /// The rank that owns tile (i, j), the same on every rank. None: each rank has its own matrix.
  std::function<std::uint32_t(std::size_t i, std::size_t j)> owner = {};
  std::source_location where = std::source_location::current();  ///< of the registration, for messages
};

namespace internal {

/// Common part of tiles of all types. Belongs to the submitting thread.
class TileRegistry {
 public:
  /// Reserves the numbers that name the tiles on every rank. Throws UsageError.
  TileRegistry(Runtime& rt, std::string name, TileGrid grid, std::size_t element_bytes);

  const std::string& name() const noexcept { return name_; }  ///< name of the matrix
  const TileGrid& grid() const noexcept { return grid_; }     ///< grid as given
  std::size_t row_tiles() const noexcept { return tiles_of(grid_.rows, grid_.tile_rows); }
  std::size_t col_tiles() const noexcept { return tiles_of(grid_.cols, grid_.tile_cols); }
  /// Index of tile (i, j), column by column. Throws UsageError when there is none.
  std::size_t index(std::size_t i, std::size_t j) const {
    if (i >= row_tiles() || j >= col_tiles()) refuse(i, j);
    return i + j * row_tiles();
  }
  /// Registers tile (i, j), for the first time here.
  runtime::Handle* add(std::size_t i, std::size_t j, const std::type_info& type) const;

 private:
  static constexpr std::size_t kMostTiles = UINT32_MAX;  ///< number of available numbers

  static std::size_t tiles_of(std::size_t size, std::size_t tile) noexcept {
    return size / tile + (size % tile != 0 ? 1 : 0);
  }
  [[noreturn]] void refuse(std::size_t i, std::size_t j) const;

  Runtime* runtime_;
  std::string name_;
  TileGrid grid_;
  std::size_t element_bytes_;
  std::uint32_t first_ = 0;  ///< number of tile (0, 0)
};

}  // namespace internal

/// A matrix of `row_tiles()` x `col_tiles()` tiles that Tandem allocates: `Runtime::tiles` makes it. Tile (i, j)
/// becomes data of kind `Matrix<T>`, under the name `A(i,j)`, at its first use on this rank. So a matrix costs a rank
/// only what it touches: 8 bytes for each 1024 tiles, and memory for the tiles that its tasks name. With pruned loops
/// (`for_tasks_of`) these are a few of many.
///
/// Belongs to the submitting thread; the runtime outlives it. Moving is cheap. When it is destroyed each tile is freed
/// as soon as its last task has ended.
template <class T>
class Tiles {
 public:
  /// Makes tiles, as `Runtime::tiles`.
  Tiles(Runtime& rt, std::string name, TileGrid grid) : registry_(rt, std::move(name), std::move(grid), sizeof(T)) {
    static_assert(std::is_trivially_copyable_v<T>,
                  "elements of a tile are moved as bytes, so their type must be trivially copyable");
    blocks_.resize((row_tiles() * col_tiles() + kBlock - 1) / kBlock);
  }

  const std::string& name() const noexcept { return registry_.name(); }         ///< name in messages and traces
  std::size_t rows() const noexcept { return registry_.grid().rows; }           ///< rows of the matrix
  std::size_t cols() const noexcept { return registry_.grid().cols; }           ///< columns of the matrix
  std::size_t row_tiles() const noexcept { return registry_.row_tiles(); }      ///< number of tile rows
  std::size_t col_tiles() const noexcept { return registry_.col_tiles(); }      ///< number of tile columns

  /// The data of tile (i, j), registered now if this is its first use here. Throws UsageError when there is no such
  /// tile.
  const Data<Matrix<T>>& operator()(std::size_t i, std::size_t j) {
    const std::size_t index = registry_.index(i, j);
    std::unique_ptr<Block>& block = blocks_[index / kBlock];
    if (block == nullptr) block = std::make_unique<Block>();
    Data<Matrix<T>>& tile = (*block)[index % kBlock];
    if (tile.handle() == nullptr) {
      tile = Data<Matrix<T>>(registry_.add(i, j, typeid(Matrix<T>)));
      ++registered_;
    }
    return tile;
  }
  /// Number of tiles that are registered on this rank.
  std::size_t registered() const noexcept { return registered_; }

 private:
  static constexpr std::size_t kBlock = 1024;  ///< neighbouring tiles whose table is made at once
  using Block = std::array<Data<Matrix<T>>, kBlock>;

  internal::TileRegistry registry_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::size_t registered_ = 0;
};

}  // namespace tandem
