// tandem/linalg/flows/own_tiles.hpp: the tiles of a matrix that concern this rank, by rows and by columns. Private to
// the flows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tandem/api/for_tasks_of.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg::internal {

/// The tiles for which this rank must submit tasks of a flow, by the state at the flow's begin: those that it owns or
/// has and, in a matrix that the flow writes, those of which it has copies. It may skip tasks that only use other
/// tiles, except the last ones to write a tile that it reads later (`Runtime::skip_tasks`).
///
/// `everything()`: nothing may be skipped. That holds on one rank, for tiles without owners, with option `prune` off,
/// and while a graph is recorded, since the ranks of tiles at a replay are not known.
class OwnTiles {
 public:
  using Indices = std::span<const std::uint32_t>;
  enum class Use : std::uint8_t { read, written };

  /// Cost: one test per tile.
  template <Scalar T>
  OwnTiles(Runtime& rt, const TiledData<T>& a, Use use) : row_tiles_(a.row_tiles()) {
    everything_ = !rt.prunes() || rt.flow()->is_recording() || !a.matrix().distribution().several();
    if (everything_) return;
    fill(a.col_tiles(), [&](std::size_t i, std::size_t j) {
      if (!a.stores(i, j)) return false;
      return use == Use::read ? rt.concerned_by(read(a(i, j))) : rt.concerned_by(read_write(a(i, j)));
    });
  }
  /// The tiles (i, j) for which `is_own(i, j)`.
  template <class IsOwn>
  OwnTiles(std::size_t row_tiles, std::size_t col_tiles, const IsOwn& is_own) : row_tiles_(row_tiles) {
    fill(col_tiles, is_own);
  }

  bool everything() const noexcept { return everything_; }
  bool has(std::size_t i, std::size_t j) const noexcept { return everything_ || own_[i + j * row_tiles_]; }
  /// The columns of own tiles in row i, and the rows of those in column j, ascending. With `everything()` the lists are
  /// empty.
  Indices row(std::size_t i) const noexcept { return everything_ ? Indices() : by_row_.list(i); }
  Indices col(std::size_t j) const noexcept { return everything_ ? Indices() : by_col_.list(j); }
  /// The columns with own tiles, ascending.
  const std::vector<std::uint32_t>& cols() const noexcept { return cols_; }

 private:
  /// Consecutive lists.
  struct Lists {
    std::vector<std::uint32_t> starts{0};
    std::vector<std::uint32_t> items;
    void end_list() { starts.push_back(static_cast<std::uint32_t>(items.size())); }
    Indices list(std::size_t index) const noexcept {
      return Indices(items).subspan(starts[index], starts[index + 1] - starts[index]);
    }
  };

  template <class IsOwn>
  void fill(std::size_t col_tiles, const IsOwn& is_own) {
    own_.resize(row_tiles_ * col_tiles);
    for (std::size_t j = 0; j < col_tiles; ++j)
      for (std::size_t i = 0; i < row_tiles_; ++i) own_[i + j * row_tiles_] = is_own(i, j);
    for (std::size_t j = 0; j < col_tiles; ++j) {
      for (std::size_t i = 0; i < row_tiles_; ++i)
        if (own_[i + j * row_tiles_]) by_col_.items.push_back(static_cast<std::uint32_t>(i));
      by_col_.end_list();
      if (!col(j).empty()) cols_.push_back(static_cast<std::uint32_t>(j));
    }
    for (std::size_t i = 0; i < row_tiles_; ++i) {
      for (std::size_t j = 0; j < col_tiles; ++j)
        if (own_[i + j * row_tiles_]) by_row_.items.push_back(static_cast<std::uint32_t>(j));
      by_row_.end_list();
    }
  }

  bool everything_ = false;
  std::size_t row_tiles_;
  std::vector<bool> own_;  ///< of tile (i, j) at i + j * row_tiles_
  Lists by_row_, by_col_;
  std::vector<std::uint32_t> cols_;
};

/// A list of the last of `count` indices.
class LastIndex {
 public:
  explicit LastIndex(std::size_t count) : index_(static_cast<std::uint32_t>(count - 1)) {}
  OwnTiles::Indices list() const noexcept { return {&index_, 1}; }

 private:
  std::uint32_t index_;
};

}  // namespace tandem::linalg::internal
