// tandem/linalg/flows/row_exchanges_test.cpp: exchanges between tiles and within one give LAPACK's permutation.
#include "tandem/linalg/flows/row_exchanges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace tandem::linalg::internal::row_exchanges_test {
namespace {

std::vector<std::size_t> identity(std::size_t size) {
  std::vector<std::size_t> rows(size);
  std::iota(rows.begin(), rows.end(), std::size_t(0));
  return rows;
}

std::vector<std::size_t> interchanged(std::size_t size, const std::vector<std::size_t>& interchanges) {
  auto rows = identity(size);
  for (std::size_t t = 0; t < interchanges.size(); ++t) std::swap(rows[t], rows[interchanges[t]]);
  return rows;
}

/// What tasks do: exchanges with each other tile in any order, then interchanges within the first tile.
std::vector<std::size_t> exchanged(std::size_t size, const std::vector<std::size_t>& partners,
                                   const std::vector<std::size_t>& within) {
  auto rows = identity(size);
  for (std::size_t t = partners.size(); t-- > 0;) std::swap(rows[t], rows[partners[t]]);
  for (std::size_t t = 0; t < within.size(); ++t) std::swap(rows[t], rows[within[t]]);
  return rows;
}

TEST(RowExchanges, BringPivotRowsToTheTopInTheirOrder) {
  const std::vector<std::size_t> pivot_rows{1, 0, 7, 2};
  std::vector<std::size_t> interchanges(4);
  interchanges_of(pivot_rows, interchanges);
  EXPECT_EQ(interchanges, (std::vector<std::size_t>{1, 1, 7, 7}));
}

TEST(RowExchanges, OfTilesGiveTheSamePermutationAsInterchanges) {
  std::mt19937 random(1);  // NOLINT: the same cases each time
  for (int round = 0; round < 2000; ++round) {
    const std::size_t tile = 1 + random() % 12, rows = tile + random() % 40, pivots = 1 + random() % tile;
    auto candidates = identity(rows);
    // Some rounds choose among few rows, so that most pivot rows are in the first tile.
    std::shuffle(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(round % 2 == 0 ? rows : tile),
                 random);
    const std::vector<std::size_t> pivot_rows(candidates.begin(),
                                              candidates.begin() + static_cast<std::ptrdiff_t>(pivots));
    std::vector<std::size_t> interchanges(pivots), partners(tile), within(tile);
    interchanges_of(pivot_rows, interchanges);
    const auto wanted = interchanged(rows, interchanges);
    ASSERT_TRUE(std::equal(pivot_rows.begin(), pivot_rows.end(), wanted.begin())) << "round " << round;
    split_interchanges(interchanges, partners, within);
    ASSERT_EQ(exchanged(rows, partners, within), wanted) << "round " << round;
    for (const std::size_t row : within) ASSERT_LT(row, tile);
  }
}

}  // namespace
}  // namespace tandem::linalg::internal::row_exchanges_test
