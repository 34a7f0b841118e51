// tandem/clock/global_clock_test.cpp: the line, its inverse, and chains of lines, against clocks whose truth is known.
#include "tandem/clock/global_clock.hpp"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace tandem::clock::global_clock_test {
namespace {

TEST(GlobalClock, IsTheIdentityByDefault) {
  const GlobalClock clock;
  EXPECT_EQ(clock.to_global(42).ns, 42);
  EXPECT_EQ(clock.to_local(42).ns, 42);
  EXPECT_LE(clock.to_global(42).error_ns, 1);
  EXPECT_TRUE(clock.exact());
}

TEST(GlobalClock, FollowsItsLineAndItsError) {
  const GlobalClock clock({.origin_ns = 1'000, .offset_ns = 500, .rate = 1e-3, .error_ns = 10, .error_rate = 1e-4,
                           .error_bend = 1e-9});
  EXPECT_EQ(clock.to_global(1'000).ns, 1'500);
  EXPECT_EQ(clock.to_global(101'000).ns, 101'600);
  EXPECT_EQ(clock.to_global(101'000).error_ns, 10 + 10 + 5 + 1);
  EXPECT_EQ(clock.to_global(-99'000).ns, -98'600) << "before the origin";
  EXPECT_EQ(clock.error_at(-99'000), 26);
  EXPECT_FALSE(clock.exact());
}

TEST(GlobalClock, ComesBackFromWhereItWent) {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<std::int64_t> time(0, 4'000'000'000'000'000'000 / 4);
  std::uniform_real_distribution<double> rate(-500e-6, 500e-6);
  for (int i = 0; i < 1'000; ++i) {
    const std::int64_t origin_ns = time(random);
    const GlobalClock clock({.origin_ns = origin_ns, .offset_ns = time(random), .rate = rate(random)});
    const std::int64_t local_ns = origin_ns + time(random) / 1'000'000;
    const GlobalTime back = clock.to_local(clock.to_global(local_ns).ns);
    EXPECT_LE(std::abs(back.ns - local_ns), 1 + back.error_ns);
    EXPECT_LE(back.error_ns, 2);
  }
}

TEST(GlobalClock, SaysTheSameAroundAnotherOriginWithABoundThatIsNotSmaller) {
  const GlobalClock clock({.origin_ns = 0, .offset_ns = 77, .rate = -3e-5, .error_ns = 100, .error_rate = 1e-6,
                           .error_bend = 1e-16});
  const GlobalClock moved = clock.around(2'000'000'000);
  for (std::int64_t local_ns = -10'000'000'000; local_ns <= 10'000'000'000; local_ns += 333'333'333) {
    EXPECT_LE(std::abs(moved.to_global(local_ns).ns - clock.to_global(local_ns).ns), 1);
    EXPECT_GE(moved.error_at(local_ns), clock.error_at(local_ns));
  }
  EXPECT_LE(moved.error_at(2'000'000'000), clock.error_at(2'000'000'000) + 1) << "at the new origin nothing is lost";
}

TEST(GlobalClock, LeadsThroughAParentAndErrorsAdd) {
  const GlobalClock first(
      {.origin_ns = 1'000'000, .offset_ns = 5'000, .rate = 40e-6, .error_ns = 200, .error_rate = 1e-7});
  const GlobalClock second(
      {.origin_ns = 9'000'000, .offset_ns = -800, .rate = -25e-6, .error_ns = 300, .error_rate = 2e-7});
  const GlobalClock both = first.then(second);
  for (std::int64_t local_ns = 0; local_ns <= 5'000'000'000; local_ns += 98'765'432) {
    const GlobalTime parent = first.to_global(local_ns), reference = second.to_global(parent.ns);
    const GlobalTime chain = both.to_global(local_ns);
    EXPECT_LE(std::abs(chain.ns - reference.ns), 2);
    EXPECT_GE(chain.error_ns + 2, parent.error_ns + reference.error_ns);
    EXPECT_LE(chain.error_ns, parent.error_ns + reference.error_ns + 10);
  }
}

TEST(GlobalClock, BetweenTwoScalesOfOneCounterIsExactForDays) {
  const TickScale ours = TickScale::through(1'000, 50, 3'000'001'000, 1'000'000'050);
  const TickScale theirs = TickScale::through(5'000, 900, 3'000'005'000, 1'000'007'900);
  constexpr std::uint64_t now_ticks = 7'000'000'000'000;
  const GlobalClock clock = GlobalClock::between(ours, theirs, now_ticks);
  EXPECT_TRUE(clock.exact());
  constexpr std::uint64_t end_ticks = now_ticks + 3'000'000'000ULL * 86'400 * 10;
  for (std::uint64_t ticks = now_ticks - 3'000'000'000; ticks < end_ticks; ticks += 12'345'678'901'234) {
    const GlobalTime time = clock.to_global(ours.to_ns(ticks));
    ASSERT_LE(std::abs(time.ns - theirs.to_ns(ticks)), time.error_ns);
  }
}

TEST(GlobalClock, NeverOverflowsItsError) {
  const GlobalClock clock({.error_ns = 1e300, .error_rate = 1, .error_bend = 1});
  EXPECT_GT(clock.error_at(INT64_MAX / 2), 800'000'000'000'000'000);
  EXPECT_GT(clock.then(clock).to_local(12).error_ns, 800'000'000'000'000'000);
}

}  // namespace
}  // namespace tandem::clock::global_clock_test
