// tandem/linalg/flows/cholesky_priorities_test.cpp: levels against the definition, over the whole graph.
#include "tandem/linalg/flows/cholesky_priorities.hpp"

#include <gtest/gtest.h>

namespace tandem::linalg::cholesky_priorities_test {
namespace {

TEST(CholeskyPriorities, OfTwoTilesAreTheChain) {
  const CholeskyPriorities priorities(2);  // potrf 1, trsm 3, herk 3, potrf 1
  EXPECT_EQ(priorities.potrf(1), 1);
  EXPECT_EQ(priorities.herk(0, 1), 4);
  EXPECT_EQ(priorities.trsm(0, 1), 7);
  EXPECT_EQ(priorities.potrf(0), 8);
}

TEST(CholeskyPriorities, EveryTaskIsMoreUrgentThanThoseThatNeedIt) {
  const std::size_t tiles = 9;
  const CholeskyPriorities p(tiles);
  for (std::size_t k = 0; k < tiles; ++k)
    for (std::size_t m = k + 1; m < tiles; ++m) {
      EXPECT_GE(p.potrf(k), p.trsm(k, m) + 1);
      EXPECT_GE(p.trsm(k, m), p.herk(k, m) + 3);
      EXPECT_GE(p.herk(k, m), (k + 1 < m ? p.herk(k + 1, m) : p.potrf(m)) + 3);
      for (std::size_t n = k + 1; n < m; ++n) {
        EXPECT_GE(p.trsm(k, m), p.gemm(k, m, n) + 3);
        EXPECT_GE(p.trsm(k, n), p.gemm(k, m, n) + 3);
        EXPECT_GE(p.gemm(k, m, n), (k + 1 < n ? p.gemm(k + 1, m, n) : p.trsm(n, m)) + 6);
      }
    }
}

TEST(CholeskyPriorities, NoTilesNoLevels) { const CholeskyPriorities none(0); }

}  // namespace
}  // namespace tandem::linalg::cholesky_priorities_test
