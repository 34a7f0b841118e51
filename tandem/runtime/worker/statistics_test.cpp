// tandem/runtime/worker/statistics_test.cpp: means and deviations against their definitions, merged and not.
#include "tandem/runtime/worker/statistics.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::runtime::statistics_test {
namespace {

DurationStatistics of(const std::vector<double>& values) {
  DurationStatistics statistics;
  for (const double value : values) statistics.add(value);
  return statistics;
}

TEST(DurationStatistics, AgreeWithTheDefinitions) {
  const std::vector<double> values{4, 7, 13, 16};
  const DurationStatistics statistics = of(values);
  EXPECT_EQ(statistics.count, 4U);
  EXPECT_DOUBLE_EQ(statistics.mean_ns, 10.0);
  EXPECT_DOUBLE_EQ(statistics.deviation_ns(), std::sqrt(90.0 / 3.0));
  EXPECT_DOUBLE_EQ(statistics.total_ns(), 40.0);
}

TEST(DurationStatistics, AreExactForLargeOffsets) {
  // The textbook formula with sums of squares would lose every digit here.
  const DurationStatistics statistics = of({1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16});
  EXPECT_NEAR(statistics.deviation_ns(), std::sqrt(30.0), 1e-6);
}

TEST(DurationStatistics, MergedInPartsAreTheWhole) {
  std::vector<double> values(1'000);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(static_cast<double>(i)) * 100 + static_cast<double>(i);
  const DurationStatistics whole = of(values);
  DurationStatistics merged = of({values.begin(), values.begin() + 10});
  merged.merge(of({values.begin() + 10, values.begin() + 700}));
  merged.merge(DurationStatistics{});
  merged.merge(of({values.begin() + 700, values.end()}));
  EXPECT_EQ(merged.count, whole.count);
  EXPECT_NEAR(merged.mean_ns, whole.mean_ns, 1e-9);
  EXPECT_NEAR(merged.deviation_ns(), whole.deviation_ns(), 1e-9);
}

TEST(DurationStatistics, OneValueHasNoDeviation) {
  EXPECT_EQ(of({5}).deviation_ns(), 0.0);
  EXPECT_EQ(of({}).deviation_ns(), 0.0);
}

TEST(StatisticsReport, TheTableNamesCodeletsAndWorkers) {
  StatisticsReport report;
  report.codelets.push_back({"potrf", of({1'000, 3'000})});
  report.workers.push_back({});
  report.workers.back().tasks = 42;
  report.workers.back().polls = 7'654;
  report.workers.back().wakes = 321;
  EXPECT_THAT(report.table(), testing::HasSubstr("potrf"));
  EXPECT_THAT(report.table(), testing::HasSubstr("2.000"));
  EXPECT_THAT(report.table(), testing::HasSubstr("42"));
  EXPECT_THAT(report.table(), testing::ContainsRegex("polls +wakes\n.* 7654 +321\n"));
}

}  // namespace
}  // namespace tandem::runtime::statistics_test
