// tandem/clock/clock_test.cpp: the manual clock moves only when set, the others only forwards.
#include "tandem/clock/clock.hpp"

#include <gtest/gtest.h>

namespace tandem::clock::clock_test {
namespace {

TEST(ManualClock, MovesOnlyWhenSet) {
  ManualClock clock(100);
  EXPECT_EQ(clock.now_ns(), 100);
  EXPECT_EQ(clock.now_ns(), 100);
  clock.advance_ns(50);
  EXPECT_EQ(clock.now_ns(), 150);
  clock.set_ns(1'000);
  EXPECT_EQ(clock.now_ns(), 1'000);
}

TEST(ManualClockDeathTest, RefusesToGoBack) {
  ManualClock clock(100);
  EXPECT_DEATH(clock.set_ns(99), "assertion failed");
  EXPECT_DEATH(clock.advance_ns(-1), "assertion failed");
}

TEST(RawMonotonicClock, NeverRunsBackwards) {
  const RawMonotonicClock clock;
  std::int64_t last_ns = clock.now_ns();
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t now_ns = clock.now_ns();
    ASSERT_GE(now_ns, last_ns);
    last_ns = now_ns;
  }
}

TEST(BestClock, CountsFromTheOriginOfTheKernelsClock) {
  const auto clock = best_clock();
  const RawMonotonicClock reference;
  const std::int64_t before_ns = reference.now_ns(), now_ns = clock->now_ns(), after_ns = reference.now_ns();
  constexpr std::int64_t error_ns = 50'000;
  EXPECT_GT(now_ns, before_ns - error_ns);
  EXPECT_LT(now_ns, after_ns + error_ns);
}

}  // namespace
}  // namespace tandem::clock::clock_test
