// tandem/analysis/tables/step_function_test.cpp: step functions against values at each nanosecond.
#include "tandem/analysis/tables/step_function.hpp"

#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace tandem::analysis::step_function_test {
namespace {

TEST(StepFunction, TheValueIsThatOfTheLastStep) {
  const StepFunction function({{30, -2}, {10, 5}, {20, 1}, {20, -1}});
  ASSERT_EQ(function.steps().size(), 2u) << "changes that cancel out are no step";
  EXPECT_EQ(function.at(9), 0);
  EXPECT_EQ(function.at(10), 5);
  EXPECT_EQ(function.at(29), 5);
  EXPECT_EQ(function.at(30), 3);
  EXPECT_DOUBLE_EQ(function.mean({0, 40}), (20 * 5 + 10 * 3) / 40.0);
  EXPECT_EQ(function.max({0, 40}), 5);
  EXPECT_EQ(function.max_at_ns({0, 40}), 10);
  EXPECT_EQ(function.max_at_ns({15, 40}), 15);
  EXPECT_EQ(function.positive_ns({0, 40}), 30);
}

TEST(StepFunction, NothingIsZero) {
  const StepFunction function;
  EXPECT_EQ(function.at(5), 0);
  EXPECT_EQ(function.mean({3, 3}), 0);
  EXPECT_EQ(function.max({3, 3}), 0);
  EXPECT_EQ(function.bins({0, 0}, 3), (std::vector<double>{0, 0, 0}));
  EXPECT_TRUE(StepFunction::count(std::vector<Interval>{{5, 5}, {7, 6}}).steps().empty());
}

TEST(StepFunction, RandomFunctionsAgreeWithTheirValuesAtEachInstant) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<Interval> intervals(random() % 30), others(random() % 30);
    for (auto* list : {&intervals, &others}) {
      for (Interval& interval : *list) {
        interval.begin_ns = static_cast<std::int64_t>(random() % 100);
        interval.end_ns = interval.begin_ns + static_cast<std::int64_t>(random() % 30);
      }
    }
    const auto count_at = [](const std::vector<Interval>& list, std::int64_t ns) {
      return std::ranges::count_if(
          list, [&](const Interval& interval) { return interval.begin_ns <= ns && ns < interval.end_ns; });
    };
    const StepFunction function = StepFunction::count(intervals), other = StepFunction::count(others);
    const Interval window{static_cast<std::int64_t>(random() % 60), static_cast<std::int64_t>(60 + random() % 80)};
    std::int64_t sum = 0, greatest = 0, positive_ns = 0, both_ns = 0;
    for (std::int64_t ns = window.begin_ns; ns < window.end_ns; ++ns) {
      const std::int64_t value = count_at(intervals, ns);
      EXPECT_EQ(function.at(ns), value) << "seed " << seed;
      sum += value;
      greatest = std::max(greatest, value);
      positive_ns += value > 0;
      both_ns += value > 0 && count_at(others, ns) == 0;
    }
    EXPECT_DOUBLE_EQ(function.integral(window), static_cast<double>(sum)) << "seed " << seed;
    EXPECT_EQ(function.max(window), greatest) << "seed " << seed;
    EXPECT_EQ(function.positive_ns(window), positive_ns) << "seed " << seed;
    std::int64_t covered_ns = 0, found_ns = 0;
    for_each_part(function, other, window, [&](Interval part, std::int64_t a, std::int64_t b) {
      covered_ns += part.length_ns();
      if (a > 0 && b == 0) found_ns += part.length_ns();
    });
    EXPECT_EQ(covered_ns, window.length_ns());
    EXPECT_EQ(found_ns, both_ns) << "seed " << seed;

    const std::size_t count = 1 + random() % 40;
    const std::vector<double> bins = function.bins(window, count);
    ASSERT_EQ(bins.size(), count);
    double again = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto border = [&](std::size_t n) {
        return window.begin_ns + window.length_ns() * static_cast<std::int64_t>(n) / static_cast<std::int64_t>(count);
      };
      EXPECT_LE(bins[i], static_cast<double>(greatest)) << "seed " << seed;
      again += bins[i] * static_cast<double>(border(i + 1) - border(i));
    }
    EXPECT_NEAR(again, static_cast<double>(sum), 1e-9) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tandem::analysis::step_function_test
