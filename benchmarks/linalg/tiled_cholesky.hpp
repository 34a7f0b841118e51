// benchmarks/linalg/tiled_cholesky.hpp: the loops and the priorities of the tiled Cholesky factorisation, for all
// peers.
#pragma once

#include <cstddef>

namespace benchmarks::linalg {

/// How many tasks follow on the longest path, the task itself included, when each task counts for one:
/// factorising tile (k, k) leads to a solve, an update and the next factorisation, so 3 tasks per remaining step; a
/// solve on row m at step k is followed by an update and a solve per step up to m; and an update of tile (m, n) by
/// those of later steps. These are the bottom levels of the graph, in closed form.
struct Priorities {
  std::size_t side;

  int potrf(std::size_t k) const { return static_cast<int>(3 * (side - 1 - k) + 1); }
  int trsm(std::size_t k, std::size_t m) const { return static_cast<int>(2 * (m - k)) + potrf(m); }
  int syrk(std::size_t k, std::size_t m) const { return static_cast<int>(m - k) + potrf(m); }
  int gemm(std::size_t k, std::size_t m, std::size_t n) const { return static_cast<int>(n - k) + trsm(n, m); }
};

/// The right-looking algorithm on the lower triangle of side x side tiles. The visitor has
///   potrf(k, priority)          A(k,k) = L L^T
///   trsm(k, m, priority)        A(m,k) := A(m,k) A(k,k)^-T
///   syrk(k, m, priority)        A(m,m) := A(m,m) - A(m,k) A(m,k)^T
///   gemm(k, m, n, priority)     A(m,n) := A(m,n) - A(m,k) A(n,k)^T
template <class Visitor>
void submit_cholesky(std::size_t side, Visitor& visitor) {
  const Priorities priorities{side};
  for (std::size_t k = 0; k < side; ++k) {
    visitor.potrf(k, priorities.potrf(k));
    for (std::size_t m = k + 1; m < side; ++m) {
      visitor.trsm(k, m, priorities.trsm(k, m));
    }
    for (std::size_t m = k + 1; m < side; ++m) {
      for (std::size_t n = k + 1; n < m; ++n) {
        visitor.gemm(k, m, n, priorities.gemm(k, m, n));
      }
      visitor.syrk(k, m, priorities.syrk(k, m));
    }
  }
}

}  // namespace benchmarks::linalg
