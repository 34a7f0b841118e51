// tandem/runtime/sched/placing/expected_tasks_test.cpp: waits for expected tasks, and their ends.
#include "tandem/runtime/sched/placing/expected_tasks.hpp"

#include <gtest/gtest.h>

namespace tandem::runtime::expected_tasks_test {
namespace {

TEST(ExpectedTasks, AreWaitedForOnceAndByOneWorkerAtATime) {
  ExpectedTasks expected;
  const auto any = [](const ExpectedTasks::Expected&) { return true; };
  EXPECT_FALSE(expected.any());
  EXPECT_EQ(expected.claim(any), std::nullopt);
  const std::uint64_t later = expected.add(5, 2000, 0), sooner = expected.add(7, 1000, 0);
  EXPECT_TRUE(expected.any() && expected.contains(later) && expected.contains(sooner));
  EXPECT_EQ(expected.claim([](const auto& known) { return known.priority == 9; }), std::nullopt);
  EXPECT_EQ(expected.claim(any)->number, sooner);
  EXPECT_EQ(expected.claim(any), std::nullopt) << "one waits";
  expected.unclaim();
  EXPECT_EQ(expected.claim(any)->number, later) << "the first one was waited for";
  expected.unclaim();
  expected.remove(later);
  expected.remove(later);
  EXPECT_EQ(expected.claim(any), std::nullopt);
  EXPECT_TRUE(expected.any());
  expected.add(1, 3'000'000'000, 2'000'000'000);
  EXPECT_FALSE(expected.contains(sooner)) << "long over, and nobody has removed it";
}

}  // namespace
}  // namespace tandem::runtime::expected_tasks_test
