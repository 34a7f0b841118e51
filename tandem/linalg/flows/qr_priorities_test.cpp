// tandem/linalg/flows/qr_priorities_test.cpp: levels against the definition, over the whole graph.
#include "tandem/linalg/flows/qr_priorities.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace tandem::linalg::qr_priorities_test {
namespace {

TEST(QrPriorities, OfTwoTimesTwoTilesAreTheChain) {
  const QrPriorities p({.rows = 2, .cols = 2});  // geqrt 4, unmqr 6, tpqrt 6, tpmqrt 12, geqrt 4
  EXPECT_EQ(p.geqrt(1), 4);
  EXPECT_EQ(p.tpmqrt(0, 1, 1), 16);
  EXPECT_EQ(p.tpqrt(0, 1), 22);
  EXPECT_EQ(p.unmqr(0, 1), 28);
  EXPECT_EQ(p.geqrt(0), 32);
}

TEST(QrPriorities, EveryTaskIsMoreUrgentThanThoseThatWaitForIt) {
  for (auto [rows, cols] : {std::pair<std::size_t, std::size_t>{7, 7}, {9, 4}, {4, 9}, {1, 5}, {5, 1}}) {
    const QrPriorities p({.rows = rows, .cols = cols});
    const std::size_t steps = std::min(rows, cols);
    for (std::size_t k = 0; k < steps; ++k) {
      for (std::size_t j = k + 1; j < cols; ++j) {
        EXPECT_GE(p.geqrt(k), p.unmqr(k, j) + 4);
        const int after = k + 1 == rows ? 0 : std::max(p.tpmqrt(k, k + 1, j), p.tpqrt(k, k + 1));
        EXPECT_EQ(p.unmqr(k, j), after + 6);
      }
      for (std::size_t i = k + 1; i < rows; ++i) {
        EXPECT_GE(p.geqrt(k), p.tpqrt(k, i) + 4);
        EXPECT_GE(p.tpqrt(k, i), (i + 1 < rows ? p.tpqrt(k, i + 1) : 0) + 6);
        for (std::size_t j = k + 1; j < cols; ++j) {
          EXPECT_GE(p.tpqrt(k, i), p.tpmqrt(k, i, j) + 6);
          int after = i + 1 < rows ? p.tpmqrt(k, i + 1, j) : 0;
          if (k + 1 < steps) {
            const bool first_row = i == k + 1, first_col = j == k + 1;
            after = std::max(after, first_row && first_col ? p.geqrt(i)
                                    : first_row            ? p.unmqr(i, j)
                                    : first_col            ? p.tpqrt(j, i)
                                                           : p.tpmqrt(k + 1, i, j));
          }
          EXPECT_EQ(p.tpmqrt(k, i, j), after + 12);
        }
      }
    }
  }
}

TEST(QrPriorities, NoTilesNoLevels) { const QrPriorities none({.rows = 0, .cols = 3}); }

}  // namespace
}  // namespace tandem::linalg::qr_priorities_test
