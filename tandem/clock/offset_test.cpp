// tandem/clock/offset_test.cpp: intervals by hand, then random delays and drifts, under which the bound must hold.
#include "tandem/clock/offset.hpp"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/clock/drifting_clock.hpp"

namespace tandem::clock::offset_test {
namespace {

constexpr OffsetOptions bare{.keep = 1, .rate_limit = 0, .reading_ns = 0};

TEST(Offset, IsTheMiddleOfOnePingPongAndHalfItsRoundTripIsTheError) {
  EXPECT_EQ(estimate_offset(std::vector<PingPong>{{0, 1'050, 100}}, bare), (OffsetPoint{50, 1'000, 50}));
}

TEST(Offset, LiesInAllIntervalsAsTheHeadersExampleSays) {
  EXPECT_EQ(estimate_offset(std::vector<PingPong>{{0, 1'050, 100}, {200, 1'290, 320}}, bare),
            (OffsetPoint{50, 1'010, 40}));
}

TEST(Offset, OfNothingIsNothing) {
  EXPECT_EQ(estimate_offset({}), std::nullopt);
  EXPECT_EQ(estimate_offset(std::vector<PingPong>{{100, 5, 50}}), std::nullopt) << "an answer before the question";
}

TEST(Offset, IgnoresTheLongRoundTrips) {
  // The long one contradicts: its stamp is of a clock that was set.
  const std::vector<PingPong> samples{{0, 1'050, 100}, {200, 9'000, 5'000}};
  EXPECT_EQ(estimate_offset(samples, {.keep = 0.5, .rate_limit = 0, .reading_ns = 0}), (OffsetPoint{50, 1'000, 50}));
}

TEST(Offset, TrustsTheShortestRoundTripWhenIntervalsContradict) {
  EXPECT_EQ(estimate_offset(std::vector<PingPong>{{0, 1'050, 100}, {200, 3'250, 310}}, bare),
            (OffsetPoint{50, 1'000, 50}));
}

TEST(Offset, IsWrongByHalfOfAConstantAsymmetryWhichTheBoundCovers) {
  // The constant delays are 80 ns there and 20 ns back: the true offset is 1,000.
  const auto point = estimate_offset(std::vector<PingPong>{{0, 1'080, 100}, {200, 1'280, 300}}, bare);
  EXPECT_EQ(point->offset_ns - 1'000, 30);
  EXPECT_GE(point->error_ns, 30);
}

TEST(Offset, HoldsItsBoundUnderRandomDelaysAndDrift) {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    std::mt19937 random(seed);
    std::exponential_distribution<double> delay(1.0 / 400);
    std::uniform_real_distribution<double> rate(-500e-6, 500e-6);
    const Drift drift{.offset_ns = 123'456'789'012, .rate = rate(random)};
    std::vector<PingPong> samples;
    std::int64_t now_ns = 0;
    for (int i = 0; i < 100; ++i) {
      PingPong sample{.send_ns = now_ns};
      now_ns += 150 + static_cast<std::int64_t>(delay(random));
      sample.remote_ns = drift.at(now_ns);
      now_ns += 150 + static_cast<std::int64_t>(delay(random));
      sample.receive_ns = now_ns;
      samples.push_back(sample);
    }
    const auto point = estimate_offset(samples);
    const std::int64_t true_offset_ns = drift.at(point->local_ns) - point->local_ns;
    EXPECT_LE(std::abs(point->offset_ns - true_offset_ns), point->error_ns) << "seed " << seed;
    EXPECT_LT(point->error_ns, 400) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tandem::clock::offset_test
