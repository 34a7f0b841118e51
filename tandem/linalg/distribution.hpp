// tandem/linalg/distribution.hpp: which rank owns which tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::linalg {

/// Owners of the tiles of a matrix: a pattern of ranks, repeated in both directions. An immutable value; copies share
/// it.
///
/// The default is no distribution: every rank has the whole matrix, as a program of one rank has.
class Distribution {
 public:
  Distribution() = default;

  /// Two-dimensional block-cyclic (ScaLAPACK's): tile (i, j) on rank (i mod P) Q + (j mod Q), as numbered by rows.
  struct Grid {
    std::uint32_t p = 1;
    std::uint32_t q = 1;
  };
  static Distribution block_cyclic(Grid grid);
  /// Like `block_cyclic`, with ranks numbered by columns: tile (i, j) on rank (i mod P) + (j mod Q) P.
  static Distribution block_cyclic_by_columns(Grid grid);
  /// The grid for a number of ranks that is nearest to a square, with P <= Q.
  static Grid squarest(std::uint32_t ranks);

  /// Blocks of neighbouring tiles of nearly equal size, for algorithms that exchange borders: tile (i, j) of rows x
  /// cols on rank floor(i P / rows) Q + floor(j Q / cols). Asserts that there are tiles. With fewer tiles than ranks
  /// some ranks get none.
  struct Tiles {
    std::size_t rows = 1;
    std::size_t cols = 1;
  };
  static Distribution contiguous(Grid grid, Tiles tiles);

  /// Tile columns, dealt out in turn in proportion to the ranks' speeds (each > 0): every prefix of the columns is as
  /// balanced as it can be (the smallest finishing time first). Each column goes to `p` ranks that follow each other,
  /// which share its rows in turn, and of which the slowest counts; the number of ranks is a multiple of `p`.
  static Distribution columns_by_speed(const std::vector<double>& speeds, std::size_t columns, std::uint32_t p = 1);

  /// Reads a pattern: one line per tile row, ranks separated by blanks, as long as the first; lines that begin with #
  /// are comments. The pattern is repeated if the matrix is larger. Errors: malformed (with the line), not_found, io.
  static base::Result<Distribution> parse(const std::string& text);
  static base::Result<Distribution> from_file(const std::string& path);

  /// Whether several ranks may own tiles; false: no distribution.
  bool several() const noexcept { return pattern_ != nullptr; }
  std::uint32_t owner(std::size_t i, std::size_t j) const noexcept {
    return (*pattern_)[i % rows_ * cols_ + j % cols_];
  }
  /// One more than the highest rank that owns a tile; 0 without distribution.
  std::uint32_t ranks() const noexcept { return ranks_; }

 private:
  Distribution(std::size_t rows, std::size_t cols, std::vector<std::uint32_t> pattern);

  std::size_t rows_ = 1;
  std::size_t cols_ = 1;
  std::uint32_t ranks_ = 0;
  std::shared_ptr<const std::vector<std::uint32_t>> pattern_;  ///< of (i, j) at i cols_ + j
};

}  // namespace tandem::linalg
