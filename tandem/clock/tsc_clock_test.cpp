// tandem/clock/tsc_clock_test.cpp: the scale by arithmetic, the TSC against the kernel's clock.
#include "tandem/clock/tsc_clock.hpp"

#include <ctime>

#include <gtest/gtest.h>

namespace tandem::clock::tsc_clock_test {
namespace {

TEST(TickScale, IsTheLineThroughTwoPoints) {
  // 3 GHz: 3,000,000,000 ticks in 1,000,000,000 ns.
  const TickScale scale = TickScale::through(1'000, 50, 3'000'001'000, 1'000'000'050);
  EXPECT_EQ(scale.to_ns(1'000), 50);
  EXPECT_NEAR(static_cast<double>(scale.to_ns(3'000'001'000)), 1'000'000'050.0, 1.0);
  EXPECT_NEAR(scale.ticks_per_ns(), 3.0, 1e-8);
}

TEST(TickScale, HoldsForTicksBeforeItsOriginAndForYearsAfter) {
  const TickScale scale = TickScale::through(1'000'000, 0, 2'000'000, 500'000);  // 2 GHz
  EXPECT_EQ(scale.to_ns(999'000), -500);
  constexpr std::uint64_t ten_years_ticks = 2ULL * 1'000'000'000 * 3600 * 24 * 365 * 10;
  EXPECT_EQ(scale.to_ns(1'000'000 + ten_years_ticks), static_cast<std::int64_t>(ten_years_ticks / 2));
}

TEST(TscClock, AgreesWithTheKernelsClock) {
  const auto calibrated = TscClock::calibrate();
  if (!calibrated) GTEST_SKIP() << calibrated.error().message;
  const TscClock& clock = calibrated.value();
  const RawMonotonicClock reference;
  const std::int64_t start_ns = clock.now_ns(), reference_start_ns = reference.now_ns();
  const timespec pause{0, 50'000'000};
  nanosleep(&pause, nullptr);
  const std::int64_t elapsed_ns = clock.now_ns() - start_ns,
                     reference_elapsed_ns = reference.now_ns() - reference_start_ns;
  // A tenth of a percent: far above the error of calibration, far below the effect of a wrong rate; it usually covers a
  // preemption between the two reads on a busy machine, and 5 ms more cover the rest.
  EXPECT_NEAR(static_cast<double>(elapsed_ns), static_cast<double>(reference_elapsed_ns),
              1e-3 * static_cast<double>(reference_elapsed_ns) + 5e6);
}

TEST(TscClock, NeverRunsBackwardsAndConvertsItsOwnTicks) {
  const auto calibrated = TscClock::calibrate(1'000'000);
  if (!calibrated) GTEST_SKIP() << calibrated.error().message;
  const TscClock& clock = calibrated.value();
  std::int64_t last_ns = clock.now_ns();
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t now_ns = clock.now_ns();
    ASSERT_GE(now_ns, last_ns);
    last_ns = now_ns;
  }
  EXPECT_GE(clock.ticks_to_ns(TscClock::ticks()), last_ns);
}

}  // namespace
}  // namespace tandem::clock::tsc_clock_test
