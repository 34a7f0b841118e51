// tools/bench/budget_test.cpp: suites share the time of a benchmark by what they do.
#include "tools/bench/budget.hpp"

#include <gtest/gtest.h>

namespace tandem::tools::bench_budget_test {
namespace {

using std::chrono::seconds;
using Time = BenchBudget::Clock::time_point;

TEST(BenchBudget, SuitesHaveTheirShares) {
  const Time begin{};
  BenchBudget budget(seconds(100), {3, 1}, begin);
  EXPECT_EQ(budget.next(begin), begin + seconds(75));
  EXPECT_EQ(budget.next(begin + seconds(75)), begin + seconds(100));
}

TEST(BenchBudget, WhatOneLeavesTheNextOnesHave) {
  const Time begin{};
  BenchBudget budget(seconds(100), {2, 1, 1}, begin);
  EXPECT_EQ(budget.next(begin), begin + seconds(50));
  EXPECT_EQ(budget.next(begin + seconds(20)), begin + seconds(60));
  EXPECT_EQ(budget.next(begin + seconds(90)), begin + seconds(100));
}

TEST(BenchBudget, WhenTheTimeIsOverItIsOver) {
  const Time begin{};
  BenchBudget budget(seconds(10), {1, 1}, begin);
  EXPECT_EQ(budget.next(begin), begin + seconds(5));
  EXPECT_EQ(budget.next(begin + seconds(30)), begin + seconds(30));
}

TEST(BenchBudget, WithoutALimitThereIsAlwaysTime) {
  BenchBudget budget(seconds(0), {1, 0}, Time{});
  EXPECT_EQ(budget.next(Time{}), Time::max());
  EXPECT_EQ(budget.next(Time{} + seconds(1000)), Time::max());
}

}  // namespace
}  // namespace tandem::tools::bench_budget_test
