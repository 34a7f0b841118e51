// tandem/clock/correction_test.cpp: traces of ranks with known wrong clocks, and the remaining errors afterwards.
//
// The system: every rank's clock shows a drift (drifting_clock.hpp) of one common time; rank 0's is the reference.
// Points are the truth with noise within their error, messages take the least latency and something random. So every
// stamp's truth is known.
#include "tandem/clock/correction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/clock/correction_solver.hpp"
#include "tandem/clock/drifting_clock.hpp"

namespace tandem::clock::correction_test {
namespace {

using base::Rank;
using Knot = Correction::Knot;
constexpr std::int64_t us = 1'000, ms = 1'000'000, second_ns = 1'000'000'000;

enum class Kind { constant, linear, sinusoidal };

Drift drift_of(unsigned rank, Kind kind) {
  Drift drift{.origin_ns = 0, .offset_ns = (rank + 1) * 777'777'777'777LL};
  if (kind != Kind::constant) drift.rate = (rank % 2 == 0 ? 1 : -1) * 5e-6 * (rank + 1);
  if (kind == Kind::sinusoidal && rank > 0)
    drift.amplitude_ns = 5'000.0 + 1'000 * rank, drift.period_ns = 60 * second_ns;
  return drift;
}

/// A run of `seconds` from common time 0 on.
struct World {
  World(unsigned rank_count, Kind drift_kind, std::int64_t run_seconds, unsigned seed = 1)
      : ranks(rank_count), kind(drift_kind), seconds(run_seconds), random(seed) {
    trace.points.resize(ranks);
  }

  std::int64_t local(unsigned rank, std::int64_t common_ns) const { return drift_of(rank, kind).at(common_ns); }

  void add_point(unsigned rank, std::int64_t common_ns, std::int64_t noise_ns, std::int64_t error_ns, bool is_barrier) {
    std::uniform_int_distribution<std::int64_t> noise(-noise_ns, noise_ns);
    trace.points[rank].push_back({local(rank, common_ns), local(0, common_ns) + noise(random), error_ns, is_barrier});
  }
  void add_barriers(std::int64_t noise_ns, std::int64_t error_ns) {
    for (unsigned rank = 0; rank < ranks; ++rank)
      for (const std::int64_t common_ns : {std::int64_t{0}, seconds * second_ns})
        add_point(rank, common_ns, noise_ns, error_ns, true);
  }
  void add_background(std::int64_t every_ns, std::int64_t noise_ns, std::int64_t error_ns) {
    for (unsigned rank = 1; rank < ranks; ++rank)
      for (std::int64_t t = every_ns; t < seconds * second_ns; t += every_ns)
        add_point(rank, t + rank * 1'234'567, noise_ns, error_ns, false);
  }
  /// Adds messages that take at least `least_ns`, and twice that on average.
  void add_messages(std::size_t count, std::int64_t least_ns) {
    std::uniform_int_distribution<std::int64_t> when(0, seconds * second_ns);
    std::uniform_int_distribution<unsigned> who(0, ranks - 1);
    std::exponential_distribution<double> more(1 / static_cast<double>(least_ns));
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t sent_ns = when(random),
                         received_ns = sent_ns + least_ns + std::llround(std::ceil(more(random)));
      const unsigned from = who(random), to = (from + 1 + who(random) % (ranks - 1)) % ranks;
      messages.push_back({Rank(from), Rank(to), local(from, sent_ns), local(to, received_ns)});
    }
  }

  CorrectedClocks correct(CorrectionOptions options) {
    trace.messages = messages;
    return correct_clocks(trace, options);
  }
  /// The worst error over the run and all ranks.
  std::int64_t worst_error_ns(const CorrectedClocks& clocks) const {
    std::int64_t worst_ns = 0;
    for (unsigned rank = 0; rank < ranks; ++rank)
      for (std::int64_t t = 0; t <= seconds * second_ns; t += 7 * ms)
        worst_ns = std::max(worst_ns, std::abs(clocks.of_rank[rank].to_reference(local(rank, t)) - local(0, t)));
    return worst_ns;
  }

  unsigned ranks;
  Kind kind;
  std::int64_t seconds;
  std::mt19937_64 random;
  TracedClocks trace;
  std::vector<TracedMessage> messages;
};

TEST(Correction, IsTheIdentityWithoutKnots) {
  const Correction identity;
  for (const std::int64_t t : {-5'000'000'000LL, 0LL, 4'000'000'000'000'000'001LL})
    EXPECT_EQ(identity.to_reference(t), t);
}

TEST(Correction, IsALineBetweenKnotsAndHoldsTheOffsetOutside) {
  const Correction correction({{100, 1'100}, {200, 1'300}, {400, 1'400}});
  EXPECT_EQ(correction.to_reference(0), 1'000);
  EXPECT_EQ(correction.to_reference(100), 1'100);
  EXPECT_EQ(correction.to_reference(150), 1'200);
  EXPECT_EQ(correction.to_reference(300), 1'350);
  EXPECT_EQ(correction.to_reference(500), 1'500);
}

TEST(Correction, HoldsTheRateOutsideWhenAsked) {
  const Correction correction({{100, 1'100}, {200, 1'300}, {400, 1'400}}, Correction::Outside::hold_rate);
  EXPECT_EQ(correction.to_reference(0), 900);
  EXPECT_EQ(correction.to_reference(500), 1'450);
  EXPECT_EQ(Correction({{100, 1'100}}, Correction::Outside::hold_rate).to_reference(0), 1'000)
      << "one knot has no rate";
}

TEST(Correction, NeverDecreasesNeitherBetweenKnotsNorWhereKnotsDo) {
  const Correction correction({{0, 50}, {97, 60}, {200, 30}, {300, 1'000}}, Correction::Outside::hold_rate);
  for (std::int64_t t = -50; t < 400; ++t) ASSERT_LE(correction.to_reference(t), correction.to_reference(t + 1)) << t;
  EXPECT_EQ(correction.to_reference(200), 60);
  EXPECT_EQ(correction.to_reference(300), 1'000);
}

TEST(Correction, ACursorSaysTheSameInAnyOrder) {
  std::mt19937_64 random(5);
  std::vector<Knot> knots;
  for (std::int64_t i = 0, local = 7, reference = 1'000; i < 50; ++i)
    knots.push_back({local += 1 + static_cast<std::int64_t>(random() % 100),
                     reference += static_cast<std::int64_t>(random() % 100)});
  const Correction correction(knots);
  Correction::Cursor rising(correction), wild(correction);
  for (std::int64_t t = -100; t < 6'000; ++t) {
    ASSERT_EQ(rising.to_reference(t), correction.to_reference(t));
    const auto anywhere = static_cast<std::int64_t>(random() % 6'000) - 100;
    ASSERT_EQ(wild.to_reference(anywhere), correction.to_reference(anywhere));
  }
}

TEST(CorrectClocks, NoneIsTheOffsetOfTheFirstPoint) {
  World world(3, Kind::linear, 10);
  world.add_barriers(0, 10);
  std::reverse(world.trace.points[1].begin(), world.trace.points[1].end());
  const CorrectedClocks clocks = world.correct({.method = CorrectionMethod::none});
  for (unsigned rank = 1; rank < 3; ++rank) {
    EXPECT_EQ(clocks.of_rank[rank].to_reference(world.local(rank, 0)), world.local(0, 0));
    EXPECT_EQ(clocks.of_rank[rank].to_reference(world.local(rank, 0) + 12'345), world.local(0, 0) + 12'345);
  }
}

TEST(CorrectClocks, AllMethodsAreRightForConstantOffsets) {
  for (const auto method : {CorrectionMethod::none, CorrectionMethod::linear, CorrectionMethod::piecewise}) {
    World world(4, Kind::constant, 10);
    world.add_barriers(0, 100);
    world.add_messages(500, 2 * us);
    const CorrectedClocks clocks = world.correct({.method = method, .least_latency_ns = 1 * us});
    EXPECT_LE(world.worst_error_ns(clocks), 1);
    EXPECT_EQ(clocks.report.after.count, 0u);
  }
}

TEST(CorrectClocks, LinearAndPiecewiseAreExactForLinearDrifts) {
  for (const auto method : {CorrectionMethod::linear, CorrectionMethod::piecewise}) {
    World world(4, Kind::linear, 100);
    world.add_barriers(0, 100);
    EXPECT_LE(world.worst_error_ns(world.correct({.method = method})), 2);
  }
}

TEST(CorrectClocks, LinearTakesTheFirstAndTheLastBarrierAndHoldsTheirOffsetsOutside) {
  World world(2, Kind::linear, 10);
  world.add_barriers(0, 100);
  world.add_point(1, 5 * second_ns, 0, 100, false);
  world.trace.points[1].back().reference_ns += 1 * ms;  // what is no barrier does not count
  world.add_point(1, -1 * second_ns, 0, 100, false);
  const CorrectedClocks clocks = world.correct({.method = CorrectionMethod::linear});
  EXPECT_LE(world.worst_error_ns(clocks), 2);
  EXPECT_EQ(clocks.of_rank[1].to_reference(world.local(1, 0) - second_ns), world.local(0, 0) - second_ns);
  const std::int64_t end = 10 * second_ns;
  EXPECT_EQ(clocks.of_rank[1].to_reference(world.local(1, end) + second_ns), world.local(0, end) + second_ns);
}

TEST(CorrectClocks, PiecewiseHoldsTheRateOutside) {
  World world(2, Kind::linear, 10);
  world.add_barriers(0, 100);
  const CorrectedClocks clocks = world.correct({});
  for (const std::int64_t common_ns : {-5 * second_ns, 20 * second_ns})
    EXPECT_NEAR(
        static_cast<double>(clocks.of_rank[1].to_reference(world.local(1, common_ns)) - world.local(0, common_ns)), 0,
        2);
}

TEST(CorrectClocks, BehavesAsInTheHeadersExample) {
  TracedClocks trace{.points = {{}, {{0, 0, 100, true}, {10 * second_ns, 10 * second_ns + 50 * us, 100, true}}},
                     .messages = {}};
  const auto at = [&](CorrectionMethod method, std::int64_t local_ns) {
    return correct_clocks(trace, {.method = method}).of_rank[1].to_reference(local_ns) - local_ns;
  };
  EXPECT_EQ(at(CorrectionMethod::none, 10 * second_ns), 0);
  EXPECT_EQ(at(CorrectionMethod::linear, 5 * second_ns), 25 * us);
  // The true offset is 15 us then. So a message that takes 4 us arrives at 5 s + 19 us by rank 0's clock.
  const std::vector<TracedMessage> messages{{Rank(1), Rank(0), 5 * second_ns, 5 * second_ns + 19 * us}};
  trace.messages = messages;
  const CorrectedClocks clocks = correct_clocks(trace);
  EXPECT_EQ(clocks.report.by_line.worst_ns, 6 * us);
  EXPECT_EQ(clocks.report.after.count, 0u);
  EXPECT_NEAR(static_cast<double>(clocks.of_rank[1].to_reference(5 * second_ns) - 5 * second_ns), 19 * us, 10);
}

struct Case {
  Kind kind;
  unsigned ranks, seed;
};

/// Points with noise each second, and many messages: no violation remains, and the remaining error is less than the
/// noise.
class Piecewise : public testing::TestWithParam<Case> {};

TEST_P(Piecewise, LeavesNoViolationAndLittleError) {
  const auto [kind, ranks, seed] = GetParam();
  World world(ranks, kind, 60, seed);
  world.add_barriers(80, 400);
  world.add_background(second_ns, 80, 400);
  world.add_messages(20'000, 1 * us);
  const CorrectedClocks clocks = world.correct({.least_latency_ns = 1 * us});
  EXPECT_LE(world.worst_error_ns(clocks), 100) ;
  EXPECT_EQ(clocks.report.after.count, 0u) << clocks.report.after.worst_ns;
  EXPECT_EQ(clocks.report.inconsistent_count, 0u);
  EXPECT_EQ(clocks.report.message_count, 20'000u);
  for (unsigned rank = 1; rank < ranks; ++rank) {
    EXPECT_EQ(clocks.report.ranks[rank].point_count, world.trace.points[rank].size());
    EXPECT_LE(clocks.report.ranks[rank].residual_max_ns, 200);
  }
  if (kind != Kind::constant) {
    EXPECT_GT(clocks.report.by_offset.count, 1'000u);
  }
  if (kind == Kind::sinusoidal) {
    EXPECT_GT(clocks.report.by_line.count, 1'000u);
  }
}

INSTANTIATE_TEST_SUITE_P(Drifts, Piecewise,
                         testing::Values(Case{Kind::constant, 2, 1}, Case{Kind::constant, 6, 2},
                                         Case{Kind::linear, 2, 3}, Case{Kind::linear, 6, 4},
                                         Case{Kind::sinusoidal, 2, 5}, Case{Kind::sinusoidal, 6, 6},
                                         Case{Kind::sinusoidal, 16, 7}));

TEST(CorrectClocks, MessagesAloneBoundWhatTwoBarriersCannotKnow) {
  World world(4, Kind::sinusoidal, 60);
  world.add_barriers(50, 300);
  world.add_messages(40'000, 1 * us);
  const std::int64_t by_line_ns = world.worst_error_ns(world.correct({.method = CorrectionMethod::linear}));
  const CorrectedClocks clocks = world.correct({.least_latency_ns = 1 * us});
  EXPECT_GT(by_line_ns, 5 * us);
  EXPECT_LE(world.worst_error_ns(clocks), 1 * us);
  EXPECT_EQ(clocks.report.after.count, 0u) << clocks.report.after.worst_ns;
  EXPECT_GT(clocks.report.largest_shift_ns, 1 * us);
  EXPECT_LT(clocks.report.window_s, 60) << "windows were halved";
}

TEST(CorrectClocks, KeepsFewOfManyMessages) {
  World world(2, Kind::linear, 60);
  world.add_barriers(80, 400);
  world.add_background(second_ns, 80, 400);
  world.add_messages(200'000, 1 * us);
  const CorrectedClocks clocks = world.correct({.least_latency_ns = 1 * us});
  EXPECT_EQ(clocks.report.after.count, 0u);
  EXPECT_GT(clocks.report.constraint_count, 100u);
  EXPECT_LT(clocks.report.constraint_count, 2'000u);
}

TEST(CorrectClocks, KnowsTheLeastLatencyOfEachPair) {
  World world(2, Kind::constant, 10);
  world.add_barriers(500, 1'000);
  world.add_messages(1'000, 5 * us);
  std::vector<std::int64_t> latencies{0, 5 * us, 5 * us, 0};
  EXPECT_EQ(world.correct({.least_latency_of_pair_ns = latencies}).report.after.count, 0u);
  latencies[1] = 6 * us;
  EXPECT_GT(world.correct({.method = CorrectionMethod::none, .least_latency_of_pair_ns = latencies}).report.after.count,
            0u);
}

TEST(CorrectClocks, DisturbedPointsThatSaySoHardlyMatter) {
  World world(2, Kind::sinusoidal, 60);
  world.add_barriers(80, 400);
  world.add_background(second_ns, 80, 400);
  for (std::int64_t t = 0; t < 60; t += 3) world.add_point(1, t * second_ns + 500 * ms, 40 * us, 40 * us, false);
  EXPECT_LE(world.worst_error_ns(world.correct({})), 300);
}

TEST(CorrectClocks, InconsistentMessagesAreCountedAndBendNothing) {
  World world(3, Kind::linear, 20);
  world.add_barriers(80, 400);
  world.add_background(second_ns, 80, 400);
  world.add_messages(1'000, 1 * us);
  const std::int64_t common_ns = 10 * second_ns;
  for (int i = 0; i < 5; ++i)
    world.messages.push_back({Rank(1), Rank(2), world.local(1, common_ns + i), world.local(2, common_ns - 5 * ms)});
  const CorrectedClocks clocks = world.correct({.least_latency_ns = 1 * us});
  EXPECT_EQ(clocks.report.inconsistent_count, 5u);
  EXPECT_EQ(clocks.report.after.count, 5u);
  EXPECT_NEAR(static_cast<double>(clocks.report.after.worst_ns), 5 * ms, 2 * us);
  EXPECT_LE(world.worst_error_ns(clocks), 150);
}

TEST(CorrectClocks, MessagesThatContradictEachOtherWithinTheErrorsAreReported) {
  World world(2, Kind::constant, 10);
  world.add_barriers(0, 10 * us);
  for (std::int64_t t = 1; t < 10; ++t) {
    const std::int64_t common_ns = t * second_ns;  // a round trip of 2 us, while one way is said to take 2 us at least
    world.messages.push_back({Rank(0), Rank(1), world.local(0, common_ns), world.local(1, common_ns + 1 * us)});
    world.messages.push_back({Rank(1), Rank(0), world.local(1, common_ns), world.local(0, common_ns + 1 * us)});
  }
  const CorrectedClocks clocks = world.correct({.least_latency_ns = 2 * us});
  EXPECT_GE(clocks.report.after.count, 9u);
  EXPECT_LE(clocks.report.after.worst_ns, 2 * us) << "in between is best";
}

TEST(CorrectClocks, TakesWhateverThereIs) {
  EXPECT_TRUE(correct_clocks({}).of_rank.empty());
  for (const auto method : {CorrectionMethod::none, CorrectionMethod::linear, CorrectionMethod::piecewise}) {
    const CorrectionOptions options{.method = method};
    EXPECT_EQ(correct_clocks({.points = {{}}, .messages = {}}, options).of_rank[0].to_reference(5), 5) << "one rank";
    const std::vector<TracedMessage> messages{{Rank(0), Rank(1), 100, 90},
                                              {Rank(1), Rank(0), 100, 110},
                                              {Rank(1), Rank(1), 9, 3},
                                              {Rank(1), Rank(0), -400 * second_ns, 400 * second_ns}};
    const CorrectedClocks none = correct_clocks({.points = {{}, {}}, .messages = messages}, options);
    EXPECT_EQ(none.of_rank[1].to_reference(5), 5) << "no points";
    EXPECT_FALSE(none.report.ranks[1].corrected);
    EXPECT_EQ(none.report.after.count, 1u);
    EXPECT_EQ(none.report.message_count, 3u);
    const CorrectedClocks one = correct_clocks({.points = {{}, {{50, 1'050, 10}}}, .messages = {}}, options);
    EXPECT_EQ(one.of_rank[1].to_reference(70), 1'070) << "one point";
    const CorrectedClocks equal = correct_clocks(
        {.points = {{}, {{50, 1'050, 10}, {50, 1'060, 10}, {50, 1'055, 10}}}, .messages = messages}, options);
    EXPECT_NEAR(static_cast<double>(equal.of_rank[1].to_reference(50)), 1'055, 6) << "equal local times";
    const CorrectedClocks backwards =
        correct_clocks({.points = {{}, {{0, 5'000, 0, true}, {100, 2'000, -7, true}}}, .messages = messages}, options);
    for (std::int64_t t = -100; t < 200; ++t)
      ASSERT_LE(backwards.of_rank[1].to_reference(t), backwards.of_rank[1].to_reference(t + 1))
          << "a reference that runs back";
  }
}

TEST(LeastSquares, SolvesTheHeadersExample) {
  internal::LeastSquares squares(std::array<double, 4>{0, 1, 0, 1});  // two functions of two knots each
  for (std::size_t column = 0; column < 4; ++column) squares.add_zero(column, std::array{1.0}, 0.5);
  const std::vector<internal::Inequality> inequalities{{.from = {0, 0.5}, .to = {2, 0.5}, .gap = -2}};
  const std::vector<double> x = squares.solve(inequalities, {.stiffness = 10, .tolerance = 1e-9});
  for (std::size_t column = 0; column < 4; ++column) EXPECT_NEAR(x[column], column < 2 ? -1 : 1, 1e-6);
}

TEST(SparseFactor, SolvesWhatItWasMadeOf) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> any(-1, 1);
  constexpr std::size_t size = 60;
  for (int trial = 0; trial < 20; ++trial) {
    internal::SparseMatrix matrix(size);
    for (std::size_t i = 0; i < size; ++i) matrix.add(i, i, 10);
    for (int i = 0; i < 100; ++i) matrix.add(random() % size, random() % size, any(random));
    std::vector<double> x(size);
    for (double& value : x) value = any(random);
    std::vector<double> y = matrix.times(x);
    internal::SparseFactor(matrix).solve(y);
    for (std::size_t i = 0; i < size; ++i) ASSERT_NEAR(y[i], x[i], 1e-10);
  }
}

/// A solution is the minimum when it is feasible and its gradient is a sum of normals, with factors that are not
/// negative, of inequalities that hold with equality: here of one variable each, so that the gradient gives the
/// factors.
TEST(LeastSquares, PushesOnlyAgainstWhatIsInTheWay) {
  std::mt19937_64 random(4);
  std::uniform_real_distribution<double> any(-1, 1);
  for (int trial = 0; trial < 50; ++trial) {
    internal::LeastSquares squares(std::array<double, 6>{0, 1, 2, 3, 4, 5});
    std::array<double, 6> wanted;
    std::array<double, 5> steps;
    for (std::size_t i = 0; i < 6; ++i) squares.add_zero(i, std::array{1e-9}, 1), wanted[i] = 10 * any(random);
    for (std::size_t i = 0; i < 5; ++i) squares.add_value({i, 0}, wanted[i], 1);
    squares.add_value({4, 1}, wanted[5], 1);
    for (std::size_t i = 0; i < 5; ++i) squares.add_zero(i, std::array{-1.0, 1.0}, steps[i] = 1 + any(random));
    std::vector<internal::Inequality> inequalities;
    for (std::size_t i = 0; i < 5; ++i) inequalities.push_back({.from = {}, .to = {i, 0}, .gap = 5 * any(random)});
    const std::vector<double> x = squares.solve(inequalities, {.stiffness = 10, .tolerance = 1e-9});
    for (std::size_t i = 0; i < 6; ++i) {
      double gradient = x[i] - wanted[i];
      if (i > 0) gradient += steps[i - 1] * (x[i] - x[i - 1]);
      if (i < 5) gradient += steps[i] * (x[i] - x[i + 1]);
      const double slack = i < 5 ? x[i] + inequalities[i].gap : 1;
      ASSERT_GE(slack, -1e-8);
      ASSERT_GE(gradient, -1e-6);
      ASSERT_NEAR(gradient * slack, 0, 1e-5) << "trial " << trial;
    }
  }
}

}  // namespace
}  // namespace tandem::clock::correction_test
