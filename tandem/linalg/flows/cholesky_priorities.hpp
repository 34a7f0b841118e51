// tandem/linalg/flows/cholesky_priorities.hpp: how urgent each task of a tiled Cholesky is: the longest path from it to
// the end.
#pragma once

#include <cstddef>
#include <vector>

namespace tandem::linalg {

/// Bottom levels in the graph of the tiled Cholesky factorisation of nt x nt tiles, in units of nb^3 / 3 operations, of
/// which potrf takes 1, trsm and herk 3, gemm 6. A task's level is its own time and the largest level of a task that
/// needs its result:
///
///   potrf(k)     = 1 + max_m trsm(k, m)                                         m > k
///   trsm(k, m)   = 3 + max( herk(k, m), max_n gemm(k, m, n), max_i gemm(k, i, m) )   k < n < m < i
///   herk(k, m)   = 3 (m - k) + potrf(m)          the updates of tile (m, m) at steps k .. m-1, then its factorisation
///   gemm(k, m, n) = 6 (n - k) + trsm(n, m)       the updates of tile (m, n) at steps k .. n-1, then its solve
///
/// A worker that always takes the highest level starts the longest remaining path first (Hu's rule for lists,
/// generalised; with a greedy schedule the makespan is at most area / p + critical path). Rows are named as in the
/// lower case; the upper case is its transpose. O(nt^3) additions, once. Immutable: any thread.
class CholeskyPriorities {
 public:
  explicit CholeskyPriorities(std::size_t tiles);

  int potrf(std::size_t k) const noexcept { return potrf_[k]; }
  int trsm(std::size_t k, std::size_t m) const noexcept { return trsm_[k * tiles_ + m]; }
  int herk(std::size_t k, std::size_t m) const noexcept { return 3 * static_cast<int>(m - k) + potrf(m); }
  int gemm(std::size_t k, std::size_t m, std::size_t n) const noexcept {
    return 6 * static_cast<int>(n - k) + trsm(n, m);
  }

 private:
  std::size_t tiles_;
  std::vector<int> potrf_;
  std::vector<int> trsm_;  ///< of (k, m) at k * tiles_ + m
};

}  // namespace tandem::linalg
