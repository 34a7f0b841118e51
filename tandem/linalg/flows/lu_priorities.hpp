// tandem/linalg/flows/lu_priorities.hpp: how urgent each task of a tiled LU is: the longest path from it to the end.
#pragma once

#include <cstddef>
#include <vector>

namespace tandem::linalg {

/// Tiles of the matrix that is factorised.
struct LuTiles {
  std::size_t rows = 0;
  std::size_t cols = 0;
};

/// Bottom levels in the graph of the tiled LU factorisation without pivoting, in units of nb^3 / 3 operations, of which
/// getrf takes 2, trsm 3, gemm 6. A task's level is its own time and the largest level of a task that needs its result,
/// with i, j > k:
///
///   getrf(k)      = 2 + max( max_i column(k, i), max_j row(k, j) )
///   column(k, i)  = 3 + max_j gemm(k, i, j)                         L(i,k) := A(i,k) U(k,k)^-1
///   row(k, j)     = 3 + max_i gemm(k, i, j)                         U(k,j) := L(k,k)^-1 A(k,j)
///   gemm(k, i, j) = 6 + the level of the next task on tile (i, j): gemm(k+1, i, j), or when k + 1 = min(i, j)
///                   getrf(i) for i = j, column(j, i) for i > j, row(i, j) for i < j
///
/// The longest path goes down the diagonal as fast as it can: getrf(k), trsm, gemm, getrf(k+1) take 11, and trsm and
/// gemm without getrf 9. So the maxima are known, and with n = min(rows, cols), e = 3 when there are tiles beyond the
/// last diagonal one and 0 otherwise:
///
///   getrf(k) = 11 (n - 1 - k) + 2 + e;   row(k, j) = 9 (j - k) + getrf(j), or 9 (n - 1 - k) + 3 for j >= n;   column likewise.
///
/// Immutable: any thread.
class LuPriorities {
 public:
  explicit LuPriorities(LuTiles tiles) noexcept;

  int getrf(std::size_t k) const noexcept { return 11 * steps(k, order_ - 1) + 2 + beyond_; }
  int column(std::size_t k, std::size_t i) const noexcept { return beside_diagonal(k, i); }
  int row(std::size_t k, std::size_t j) const noexcept { return beside_diagonal(k, j); }
  int gemm(std::size_t k, std::size_t i, std::size_t j) const noexcept;

 private:
  static int steps(std::size_t from, std::size_t to) noexcept { return static_cast<int>(to - from); }
  int beside_diagonal(std::size_t k, std::size_t other) const noexcept {
    return other < order_ ? 9 * steps(k, other) + getrf(other) : 9 * steps(k, order_ - 1) + 3;
  }

  std::size_t order_;
  int beyond_;
};

/// Levels with a tournament before each getrf, which all tiles of the panel enter, and exchanges of rows after it,
/// which count nothing. A match of two tiles takes 5, a panel of one tile 2, and a panel of r tiles ceil(log2 r) rounds
/// of matches:
///
///   panel(k)      = t(rows - k) + getrf(k),   t(1) = 2,   t(r) = 5 ceil(log2 r)
///   gemm(k, i, j) = 6 + (panel(j) for j = k + 1, otherwise row(k+1, j)), whatever i: the exchanges join the column's
///   tiles
///   row(k, j)     = 3 + gemm(k, i, j) = 9 (j - k) + panel(j), or 9 (n - 1 - k) + 3 for j >= n
///   column(k, i)  = 3 + max_j gemm(k, i, j) = row(k, k+1), or 3 for the last
///   getrf(k)      = 2 + the larger of both = 11 + panel(k+1), or 2 + e for the last
///
/// Immutable: any thread.
class TournamentPriorities {
 public:
  explicit TournamentPriorities(LuTiles tiles);

  /// The level of a match after `played` rounds; with the number of all rounds, of what follows the last one.
  int match(std::size_t k, std::size_t played) const noexcept;
  int getrf(std::size_t k) const noexcept { return getrf_[k]; }
  /// Exchanges in column j: those of the panel itself are as urgent as its getrf, and those of finished columns may
  /// wait.
  int exchange(std::size_t k, std::size_t j) const noexcept { return j < k ? 0 : j == k ? getrf(k) : row(k, j); }
  int column(std::size_t k) const noexcept { return k + 1 < getrf_.size() ? row(k, k + 1) : 3; }
  int row(std::size_t k, std::size_t j) const noexcept;
  int gemm(std::size_t k, std::size_t j) const noexcept { return row(k, j) - 3; }

  /// ceil(log2 of the panel's tiles), at least 1.
  std::size_t rounds(std::size_t k) const noexcept;

 private:
  int panel(std::size_t k) const noexcept { return match(k, 0); }

  LuTiles tiles_;
  std::vector<int> getrf_;
};

}  // namespace tandem::linalg
