// tandem/analysis/tables/sort_times_test.cpp: sorts against the standard library's.
#include "tandem/analysis/tables/sort_times.hpp"

#include <limits>
#include <random>
#include <utility>

#include <gtest/gtest.h>

namespace tandem::analysis::sort_times_test {
namespace {

TEST(SortTimes, RandomRowsAreSortedAsTheStandardLibrarySortsThem) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min(), greatest = std::numeric_limits<std::int64_t>::max();
  const std::pair<std::int64_t, std::int64_t> ranges[] = {
      {0, 0}, {-5, 5}, {0, 5'000}, {1'000'000'000, 9'000'000'000}, {least, greatest}};
  struct Row {
    std::int64_t ns = 0;
    std::size_t number = 0;
    bool operator==(const Row&) const = default;
  };
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const auto [first, last] = ranges[seed % std::size(ranges)];
    std::uniform_int_distribution<std::int64_t> time(first, last);
    std::vector<Row> rows(random() % 3'000);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = {time(random), i};
    std::vector<Row> expected = rows;
    std::ranges::stable_sort(expected, {}, &Row::ns);
    sort_by_time(rows, &Row::ns);
    EXPECT_EQ(rows, expected) << "seed " << seed;
  }
}

TEST(SortTimes, RunsOfRowsInOrderAreMerged) {
  struct Row {
    std::int64_t ns = 0;
    std::size_t number = 0;
    bool operator==(const Row&) const = default;
  };
  for (std::size_t runs = 1; runs <= 12; ++runs) {
    std::mt19937_64 random(runs);
    std::vector<Row> rows;
    for (std::size_t run = 0; run < runs; ++run) {
      std::int64_t ns = static_cast<std::int64_t>(random() % 100);
      for (std::size_t i = 0; i < 300 + random() % 300; ++i)
        rows.push_back({ns += static_cast<std::int64_t>(random() % 3), rows.size()});
    }
    std::vector<Row> expected = rows;
    std::ranges::stable_sort(expected, {}, &Row::ns);
    sort_by_time(rows, &Row::ns);
    EXPECT_EQ(rows, expected) << runs << " runs";
  }
}

TEST(SortTimes, RowsOfOneTimeAreSortedByRow) {
  std::vector<TimedRow> rows;
  for (std::uint32_t i = 0; i < 2'000; ++i) rows.push_back({static_cast<std::int64_t>(i / 10), i ^ 7});
  sort_by_time_and_row(rows);
  for (std::size_t i = 1; i < rows.size(); ++i)
    ASSERT_LT(std::pair(rows[i - 1].ns, rows[i - 1].row), std::pair(rows[i].ns, rows[i].row)) << i;
}

TEST(SortTimes, NoRowsAndOneRowAreSorted) {
  std::vector<std::int64_t> none, one{7};
  sort_by_time(none);
  sort_by_time(one);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(one, std::vector<std::int64_t>{7});
}

}  // namespace
}  // namespace tandem::analysis::sort_times_test
