// tandem/clock/drifting_clock_test.cpp: a drifting clock shows what its formula says, and runs forwards.
#include "tandem/clock/drifting_clock.hpp"

#include <gtest/gtest.h>

namespace tandem::clock::drifting_clock_test {
namespace {

TEST(DriftingClock, AddsOffsetRateAndWave) {
  ManualClock base;
  const DriftingClock clock(base, {.offset_ns = 1'000, .rate = 1e-3, .amplitude_ns = 500, .period_ns = 4'000'000});
  EXPECT_EQ(clock.now_ns(), 1'000);
  base.set_ns(1'000'000);  // a quarter of the period
  EXPECT_EQ(clock.now_ns(), 1'000'000 + 1'000 + 1'000 + 500);
  base.set_ns(3'000'000);  // three quarters
  EXPECT_EQ(clock.now_ns(), 3'000'000 + 1'000 + 3'000 - 500);
}

TEST(DriftingClock, NeverRunsBackwards) {
  const Drift drift{.rate = -200e-6, .amplitude_ns = 10'000, .period_ns = 1'000'000'000};
  std::int64_t last_ns = drift.at(0);
  for (std::int64_t base_ns = 1; base_ns < 100'000; ++base_ns) {
    ASSERT_GE(drift.at(base_ns), last_ns);
    last_ns = drift.at(base_ns);
  }
}

TEST(Drift, SaysWhatLimitsItNeeds) {
  const Drift drift{.rate = -50e-6, .amplitude_ns = 1'000, .period_ns = 6'283'185'307};  // 2 pi seconds
  EXPECT_NEAR(drift.greatest_rate(), 51e-6, 1e-9);
  EXPECT_NEAR(drift.greatest_rate_change_per_s(), 1e-6, 1e-9);
}

TEST(DriftingClockDeathTest, RefusesADriftThatCouldTurnItBack) {
  const ManualClock base;
  EXPECT_DEATH(DriftingClock(base, {.rate = -0.7}), "assertion failed");
}

}  // namespace
}  // namespace tandem::clock::drifting_clock_test
