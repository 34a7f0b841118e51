// tandem/linalg/flows/own_tiles_test.cpp: lists of tiles, and unions of lists, against the predicates that they
// represent.
#include "tandem/linalg/flows/own_tiles.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tandem::linalg::internal::own_tiles_test {
namespace {

std::vector<std::uint32_t> list(OwnTiles::Indices indices) { return {indices.begin(), indices.end()}; }

TEST(OwnTiles, ListsAreThoseOfThePredicateOnEverySmallMatrix) {
  for (std::size_t rows = 0; rows <= 3; ++rows) {
    for (std::size_t cols = 0; cols <= 3; ++cols) {
      for (std::uint32_t mask = 0; mask < 1U << (rows * cols); ++mask) {
        const auto is_own = [&](std::size_t i, std::size_t j) { return (mask >> (i + j * rows) & 1) != 0; };
        const OwnTiles own(rows, cols, is_own);
        EXPECT_FALSE(own.everything());
        std::vector<std::uint32_t> columns;
        for (std::size_t j = 0; j < cols; ++j) {
          std::vector<std::uint32_t> expected;
          for (std::uint32_t i = 0; i < rows; ++i) {
            ASSERT_EQ(own.has(i, j), is_own(i, j));
            if (is_own(i, j)) expected.push_back(i);
          }
          ASSERT_EQ(list(own.col(j)), expected);
          if (!expected.empty()) columns.push_back(static_cast<std::uint32_t>(j));
        }
        ASSERT_EQ(own.cols(), columns);
        for (std::size_t i = 0; i < rows; ++i) {
          std::vector<std::uint32_t> expected;
          for (std::uint32_t j = 0; j < cols; ++j)
            if (is_own(i, j)) expected.push_back(j);
          ASSERT_EQ(list(own.row(i)), expected);
        }
      }
    }
  }
}

TEST(OwnTiles, OnOneRankThereIsNothingToPassOver) {
  Runtime rt(Options{.workers = 1});
  TileMatrix<double> matrix({.rows = 10, .cols = 10, .tile = 4});
  const TiledData<double> data(rt, "A", matrix);
  const OwnTiles own(rt, data, OwnTiles::Use::written);
  EXPECT_TRUE(own.everything());
  EXPECT_TRUE(own.has(2, 1));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(own.row(i).empty());
    EXPECT_TRUE(own.col(i).empty());
  }
}

/// All pairs of subsets of five indices, from and to each bound.
TEST(TaskIndices, TakeTheUnionInOrder) {
  const auto list_of = [](std::uint32_t mask) {
    std::vector<std::uint32_t> list;
    for (std::uint32_t i = 0; i < 5; ++i)
      if ((mask >> i & 1) != 0) list.push_back(i);
    return list;
  };
  for (std::uint32_t a = 0; a < 32; ++a) {
    for (std::uint32_t b = 0; b < 32; ++b) {
      const auto first_list = list_of(a), second_list = list_of(b), third = list_of(a & 4);
      for (std::size_t first = 0; first <= 5; ++first) {
        for (std::size_t last = first; last <= 5; ++last) {
          std::vector<std::size_t> expected, taken;
          for (std::size_t i = first; i < last; ++i)
            if (((a | b) >> i & 1) != 0) expected.push_back(i);
          TaskIndices indices{first_list, second_list, third};
          EXPECT_FALSE(indices.is_all());
          indices.skip_to(first);
          while (const auto index = indices.take(last)) taken.push_back(*index);
          ASSERT_EQ(taken, expected);
        }
      }
    }
  }
  EXPECT_TRUE(TaskIndices::all().is_all());
  TaskIndices none{TaskIndices::List()};
  EXPECT_FALSE(none.take(10).has_value());
}

}  // namespace
}  // namespace tandem::linalg::internal::own_tiles_test
