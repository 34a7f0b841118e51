// tandem/linalg/flows/lu_priorities_test.cpp: levels against the recursions that define them, over the whole graph.
#include "tandem/linalg/flows/lu_priorities.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tandem::linalg::lu_priorities_test {
namespace {

constexpr LuTiles shapes[] = {{1, 1}, {2, 2}, {7, 7}, {9, 4}, {4, 9}, {5, 1}, {1, 5}};

TEST(LuPriorities, OfTwoTilesAreTheChain) {
  const LuPriorities priorities({.rows = 2, .cols = 2});  // getrf 2, trsm 3, gemm 6, getrf 2
  EXPECT_EQ(priorities.getrf(1), 2);
  EXPECT_EQ(priorities.gemm(0, 1, 1), 8);
  EXPECT_EQ(priorities.row(0, 1), 11);
  EXPECT_EQ(priorities.column(0, 1), 11);
  EXPECT_EQ(priorities.getrf(0), 13);
}

TEST(LuPriorities, MeetTheirRecursion) {
  for (const auto [rows, cols] : shapes) {
    const LuPriorities p({.rows = rows, .cols = cols});
    for (std::size_t k = 0; k < std::min(rows, cols); ++k) {
      int after_getrf = 0;
      for (std::size_t i = k + 1; i < rows; ++i) {
        int after = 0;
        for (std::size_t j = k + 1; j < cols; ++j) after = std::max(after, p.gemm(k, i, j));
        EXPECT_EQ(p.column(k, i), 3 + after);
        after_getrf = std::max(after_getrf, p.column(k, i));
      }
      for (std::size_t j = k + 1; j < cols; ++j) {
        int after = 0;
        for (std::size_t i = k + 1; i < rows; ++i) after = std::max(after, p.gemm(k, i, j));
        EXPECT_EQ(p.row(k, j), 3 + after);
        after_getrf = std::max(after_getrf, p.row(k, j));
      }
      EXPECT_EQ(p.getrf(k), 2 + after_getrf);
      for (std::size_t i = k + 1; i < rows; ++i)
        for (std::size_t j = k + 1; j < cols; ++j) {
          const int factorised = i == j ? p.getrf(i) : i > j ? p.column(j, i) : p.row(i, j);
          EXPECT_EQ(p.gemm(k, i, j), 6 + (k + 1 < std::min(i, j) ? p.gemm(k + 1, i, j) : factorised));
        }
    }
  }
}

TEST(TournamentPriorities, MeetTheirRecursion) {
  for (const auto [rows, cols] : shapes) {
    const TournamentPriorities p({.rows = rows, .cols = cols});
    for (std::size_t k = 0; k < std::min(rows, cols); ++k) {
      int after_column = 0, after_getrf = k + 1 < rows ? p.column(k) : 0;
      for (std::size_t j = k + 1; j < cols; ++j) {
        EXPECT_EQ(p.row(k, j), 3 + (k + 1 < rows ? p.gemm(k, j) : 0));
        EXPECT_EQ(p.exchange(k, j), p.row(k, j));
        if (k + 1 < rows) after_column = std::max(after_column, p.gemm(k, j));
        after_getrf = std::max(after_getrf, p.row(k, j));
      }
      if (k + 1 < rows) {
        EXPECT_EQ(p.column(k), 3 + after_column);
      }
      EXPECT_EQ(p.getrf(k), 2 + after_getrf);
      EXPECT_EQ(p.exchange(k, k), p.getrf(k));
      EXPECT_EQ(p.match(k, p.rounds(k)), p.getrf(k));
      EXPECT_EQ(p.match(k, 0), p.getrf(k) + (rows - k == 1 ? 2 : 5 * static_cast<int>(p.rounds(k))));
      if (k + 1 < rows && k + 1 < cols) {
        for (std::size_t j = k + 1; j < cols; ++j)
          EXPECT_EQ(p.gemm(k, j), 6 + (j == k + 1 ? p.match(j, 0) : p.row(k + 1, j)));
      }
    }
  }
}

TEST(TournamentPriorities, RoundsHalveTheTiles) {
  const TournamentPriorities p({.rows = 9, .cols = 9});
  EXPECT_EQ(p.rounds(0), 4u);  // 9 tiles
  EXPECT_EQ(p.rounds(1), 3u);
  EXPECT_EQ(p.rounds(5), 2u);
  EXPECT_EQ(p.rounds(7), 1u);
  EXPECT_EQ(p.rounds(8), 1u);
}

TEST(LuPriorities, NoTilesNoLevels) {
  const LuPriorities none({.rows = 0, .cols = 3});
  const TournamentPriorities none_either({.rows = 3, .cols = 0});
}

}  // namespace
}  // namespace tandem::linalg::lu_priorities_test
