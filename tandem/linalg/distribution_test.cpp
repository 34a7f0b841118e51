// tandem/linalg/distribution_test.cpp: neighbours stay together in a contiguous distribution.
#include "tandem/linalg/distribution.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tandem::linalg::distribution_test {
namespace {

TEST(Distribution, ContiguousBlocksAreEvenAndNumberedByRows) {
  const auto distribution = Distribution::contiguous({.p = 2, .q = 3}, {.rows = 5, .cols = 9});
  std::vector<std::vector<std::uint32_t>> rows;
  for (std::size_t i = 0; i < 5; ++i) {
    rows.emplace_back();
    for (std::size_t j = 0; j < 9; ++j) rows.back().push_back(distribution.owner(i, j));
  }
  const std::vector<std::uint32_t> upper{0, 0, 0, 1, 1, 1, 2, 2, 2}, lower{3, 3, 3, 4, 4, 4, 5, 5, 5};
  EXPECT_EQ(rows, (std::vector<std::vector<std::uint32_t>>{upper, upper, upper, lower, lower}));
  EXPECT_EQ(distribution.ranks(), 6u);
}

TEST(Distribution, ColumnsGoToRanksAndToGroupsOfThemBySpeed) {
  const auto count = [](const Distribution& distribution, std::uint32_t rank, std::size_t rows, std::size_t columns) {
    std::size_t tiles = 0;
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) tiles += distribution.owner(i, j) == rank ? 1 : 0;
    return tiles;
  };
  const auto alone = Distribution::columns_by_speed({1, 3}, 40);
  EXPECT_EQ(count(alone, 0, 1, 40), 10u);
  EXPECT_EQ(count(alone, 1, 1, 40), 30u);
  const auto groups = Distribution::columns_by_speed({1, 2, 3, 4}, 40, 2);  // the slowest of each: 1 and 3
  EXPECT_EQ(groups.ranks(), 4u);
  for (const std::uint32_t rank : {0u, 1u}) EXPECT_EQ(count(groups, rank, 2, 40), 10u);
  for (const std::uint32_t rank : {2u, 3u}) EXPECT_EQ(count(groups, rank, 2, 40), 30u);
  EXPECT_NE(groups.owner(0, 0), groups.owner(1, 0)) << "rows in turn";
}

TEST(Distribution, ContiguousWithFewerTilesThanRanksLeavesSomeWithout) {
  const auto distribution = Distribution::contiguous({.p = 1, .q = 8}, {.rows = 3, .cols = 3});
  for (std::size_t j = 0; j < 3; ++j) {
    EXPECT_EQ(distribution.owner(0, j), distribution.owner(2, j));
    EXPECT_LT(distribution.owner(0, j), 8u);
  }
  EXPECT_LT(distribution.owner(0, 0), distribution.owner(0, 1));
  EXPECT_LT(distribution.owner(0, 1), distribution.owner(0, 2));
}

}  // namespace
}  // namespace tandem::linalg::distribution_test
