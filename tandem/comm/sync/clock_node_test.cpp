// tandem/comm/sync/clock_node_test.cpp: synchronisation among simulated ranks whose truth is known: rounds, bounds,
// accuracy, deaths.
#include "tandem/comm/sync/clock_node.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/comm/sync/simulated_ranks.hpp"
#include "tandem/comm/sync/tree.hpp"

namespace tandem::comm::internal::sync::clock_node_test {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

std::int64_t error_of(SimulatedRanks& ranks, std::uint32_t rank) {
  return std::abs(ranks.node(rank).to_reference().to_global(ranks.local_ns(rank)).ns - ranks.true_global_ns());
}

void expect_within_bound(SimulatedRanks& ranks, std::uint32_t rank, unsigned seed) {
  const std::int64_t bound_ns = ranks.node(rank).to_reference().error_at(ranks.local_ns(rank));
  ASSERT_LE(error_of(ranks, rank), bound_ns) << "seed " << seed << ", rank " << rank << ", at " << ranks.now_ns();
}

TEST(ClockTree, IsTheBinomialTree) {
  EXPECT_EQ(parent_of(Rank{1}), Rank{0});
  EXPECT_EQ(parent_of(Rank{6}), Rank{2});
  EXPECT_EQ(parent_of(Rank{13}), Rank{5});
  EXPECT_EQ(children_of(Rank{0}, 6), (std::vector{Rank{1}, Rank{2}, Rank{4}}));
  EXPECT_EQ(children_of(Rank{1}, 6), (std::vector{Rank{3}, Rank{5}}));
  EXPECT_EQ(children_of(Rank{3}, 6), std::vector<Rank>{});
  EXPECT_EQ(children_of(Rank{0}, 1), std::vector<Rank>{});
}

TEST(ClockTree, HasEveryRankOnceWithItsParent) {
  for (std::uint32_t size = 1; size <= 70; ++size) {
    std::uint32_t edges = 0;
    for (std::uint32_t rank = 0; rank < size; ++rank)
      for (const Rank child : children_of(Rank{rank}, size)) {
        EXPECT_EQ(parent_of(child), Rank{rank});
        ++edges;
      }
    EXPECT_EQ(edges, size - 1);
  }
}

TEST(ClockNode, TheReferenceKnowsItsOwnTimeAndNeverMeasures) {
  ClockNode node({.rank = Rank{0}}, {});
  Outbox outbox;
  EXPECT_TRUE(node.known());
  EXPECT_EQ(node.step(0, outbox), base::kNever);
  EXPECT_TRUE(outbox.empty());
  EXPECT_EQ(node.to_reference().to_global(17).ns, 17);
}

TEST(ClockNode, LearnsTheTimeInARoundPerLevelOfTheTree) {
  // One measurement takes about 128 round trips. A parent serves the first child that asks, then children in the order
  // of rounds: up to two measurements per level.
  SimulatedRanks::Options options;
  options.sleepy_share = 0;
  std::vector<std::int64_t> needed_ns;
  for (const std::uint32_t size : {2U, 8U, 64U, 512U}) {
    SimulatedRanks ranks(1, assorted_drifts(size, 1), options);
    ASSERT_TRUE(ranks.run(10 * second_ns, [&] { return ranks.all_known(); })) << size;
    needed_ns.push_back(ranks.now_ns() / std::bit_width(size - 1));
  }
  for (const std::int64_t per_level_ns : needed_ns) EXPECT_LT(per_level_ns, 5 * needed_ns.front() / 2);
}

TEST(ClockNode, StaysWithinItsBoundWhateverTheDriftsAndDelays) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SimulatedRanks ranks(seed, assorted_drifts(7, seed));
    ASSERT_TRUE(ranks.run(second_ns, [&] { return ranks.all_known(); }));
    for (std::int64_t until_ns = second_ns; until_ns <= 30 * second_ns; until_ns += 7'654'321) {
      ranks.run(until_ns);
      for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) expect_within_bound(ranks, rank, seed);
    }
  }
}

TEST(ClockNode, IsWithinHalfAMicrosecondOfTheTruthAfterTenSeconds) {
  std::vector<std::int64_t> errors_ns;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SimulatedRanks ranks(seed, assorted_drifts(4, seed));
    for (std::int64_t until_ns = 10 * second_ns; until_ns <= 20 * second_ns; until_ns += 12'345'678) {
      ranks.run(until_ns);
      for (std::uint32_t rank = 1; rank < ranks.size(); ++rank) errors_ns.push_back(error_of(ranks, rank));
    }
  }
  std::sort(errors_ns.begin(), errors_ns.end());
  EXPECT_LT(errors_ns[errors_ns.size() * 99 / 100], 500);
}

TEST(ClockNode, ToleratesAThreadThatSleepsForEveryMessage) {
  SimulatedRanks::Options options;
  options.sleepy_share = 1;
  SimulatedRanks ranks(3, assorted_drifts(4, 3), options);
  for (std::int64_t until_ns = second_ns; until_ns <= 10 * second_ns; until_ns += 98'765'432) {
    ranks.run(until_ns);
    ASSERT_TRUE(ranks.all_known());
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) expect_within_bound(ranks, rank, 3);
  }
}

TEST(ClockNode, AStoppedChildDoesNotKeepItsSiblingsFromTheirTurn) {
  SimulatedRanks ranks(5, assorted_drifts(4, 5));
  ranks.run(60'000);  // rank 1 has its turn and measures
  ranks.stop_until(1, 5 * second_ns);
  EXPECT_TRUE(ranks.run(second_ns, [&] { return ranks.node(2).known(); }));
  EXPECT_TRUE(ranks.run(6 * second_ns, [&] { return ranks.all_known(); })) << "and goes on when it runs again";
}

TEST(ClockNode, ADeadParentsPlaceIsTakenByItsParent) {
  SimulatedRanks ranks(6, assorted_drifts(8, 6));
  ranks.run(5 * second_ns);
  ASSERT_EQ(ranks.node(7).parent(), Rank{3});
  ranks.kill(3);
  for (std::int64_t until_ns = 5 * second_ns; until_ns <= 20 * second_ns; until_ns += 23'456'789) {
    ranks.run(until_ns);
    expect_within_bound(ranks, 7, 6);
  }
  EXPECT_EQ(ranks.node(7).parent(), Rank{1});
  EXPECT_LT(ranks.node(7).to_reference().error_at(ranks.local_ns(7)), 10'000);
}

TEST(ClockNode, WithoutTheReferenceTimeGoesOnAndItsBoundGrows) {
  SimulatedRanks ranks(7, assorted_drifts(2, 7));
  ranks.run(5 * second_ns);
  const std::int64_t before_ns = ranks.node(1).to_reference().error_at(ranks.local_ns(1));
  ranks.kill(0);
  ranks.run(15 * second_ns);
  EXPECT_EQ(ranks.node(1).parent(), std::nullopt);
  EXPECT_TRUE(ranks.node(1).known());
  EXPECT_GT(ranks.node(1).to_reference().error_at(ranks.local_ns(1)), before_ns);
  expect_within_bound(ranks, 1, 7);
}

/// Rank 0, whose clock is ahead by `offset_ns`, answers a whole measurement, each ping after 300 ns.
void measure_once(ClockNode& node, Outbox& outbox, std::int64_t now_ns, std::int64_t offset_ns) {
  node.step(now_ns, outbox);
  node.take(Rank{0}, Turn{std::get<Ask>(outbox.back().record).attempt}, now_ns, outbox);
  while (node.measuring()) {
    const auto attempt = std::get<Ping>(outbox.back().record).attempt;
    node.take(Rank{0}, Pong{attempt, now_ns, now_ns + 300 + offset_ns}, now_ns + 600, outbox);
    now_ns += 600;
  }
}

TEST(ClockNode, SetClocksAreMeasuredAnew) {
  ClockNode node({.rank = Rank{1}},
                 {.interval_ns = second_ns, .first_interval_ns = 10'000'000, .ping_pongs = 1, .limits = {}});
  Outbox outbox;
  const auto measure = [&](std::int64_t now_ns, std::int64_t offset_ns) {
    measure_once(node, outbox, now_ns, offset_ns);
  };
  std::int64_t now_ns = 0;
  for (int i = 0; i < 12; ++i, now_ns = node.next_due_ns()) measure(now_ns, 1'000);
  EXPECT_EQ(node.next_due_ns() - now_ns, 0);
  const std::int64_t usual_gap_ns = node.next_due_ns() - node.model().last().local_ns;
  EXPECT_NEAR(static_cast<double>(usual_gap_ns), 1e9, 1e6);
  measure(now_ns, 50'000'000);  // the parent's clock was set, or the measurement was disturbed
  EXPECT_GE(node.to_reference().error_at(now_ns), 49'999'000) << "the error includes both";
  EXPECT_LT(node.next_due_ns() - now_ns, 20'000'000) << "the next measurement comes soon";
  now_ns = node.next_due_ns();
  measure(now_ns, 50'000'000);
  EXPECT_NEAR(static_cast<double>(node.to_reference().terms().offset_ns), 50e6, 300);
  EXPECT_LT(node.to_reference().error_at(now_ns), 100'000);
}

TEST(ClockNode, OneDisturbedMeasurementChangesNothingForLong) {
  ClockNode node({.rank = Rank{1}},
                 {.interval_ns = second_ns, .first_interval_ns = 10'000'000, .ping_pongs = 1, .limits = {}});
  Outbox outbox;
  const auto measure = [&](std::int64_t now_ns, std::int64_t offset_ns) {
    measure_once(node, outbox, now_ns, offset_ns);
  };
  std::int64_t now_ns = 0;
  for (int i = 0; i < 12; ++i, now_ns = node.next_due_ns()) measure(now_ns, 1'000);
  const double usual_ns = static_cast<double>(node.to_reference().error_at(node.model().last().local_ns));
  measure(now_ns, 21'000);
  EXPECT_GE(node.to_reference().error_at(now_ns), 20'000);
  now_ns = node.next_due_ns();
  measure(now_ns, 1'000);
  EXPECT_NEAR(static_cast<double>(node.to_reference().error_at(node.model().last().local_ns)), usual_ns, 20);
  EXPECT_NEAR(static_cast<double>(node.to_reference().terms().offset_ns), 1'000, 20);
}

TEST(ClockNode, RanksOfOneHostComputeTheirOffset) {
  const clock::TickScale ours = clock::TickScale::through(0, 0, 3'000'000'000, 1'000'000'100);
  const clock::TickScale theirs = clock::TickScale::through(0, 700, 3'000'000'000, 999'999'900);
  ClockNode node({.rank = Rank{1},
                  .counter = {SharedCounter::tsc, ours},
                  .same_host = [](Rank) { return true; },
                  .ticks = [] { return std::uint64_t{9'000'000'000'000}; }},
                 {});
  Outbox outbox;
  node.step(0, outbox);
  node.take(Rank{0}, Turn{1, {}, {SharedCounter::tsc, theirs}}, 0, outbox);
  EXPECT_TRUE(node.known());
  EXPECT_TRUE(std::holds_alternative<End>(outbox.back().record));
  EXPECT_EQ(node.next_due_ns(), base::kNever) << "nothing will change";
  for (std::uint64_t ticks = 0; ticks < 90'000'000'000'000; ticks += 999'999'999'999) {
    const clock::GlobalTime time = node.to_reference().to_global(ours.to_ns(ticks));
    ASSERT_LE(std::abs(time.ns - theirs.to_ns(ticks)), time.error_ns);
    ASSERT_LE(time.error_ns, 4);
  }
}

TEST(ClockNode, LeavesItsParentsProcessorOnOneHostOnly) {
  for (const bool same_host : {true, false}) {
    std::vector<std::uint64_t> asked;
    ClockNode node({.rank = Rank{1},
                    .same_host = [same_host](Rank) { return same_host; },
                    .leave_processor =
                        [&asked](std::uint64_t processor) {
                          asked.push_back(processor);
                          return processor == 7;  // this test's processor
                        }},
                   {.first_ping_pongs = 8});
    Outbox outbox;
    node.step(0, outbox);
    node.take(Rank{0}, Turn{1}, 0, outbox);
    for (std::int64_t i = 0; node.measuring(); ++i) node.take(Rank{0}, Pong{1, i, i, i < 3 ? 3U : 7U}, i + 1, outbox);
    // Three times the peer was elsewhere, twice this thread moved; then it has to use what it has.
    EXPECT_EQ(asked, same_host ? (std::vector<std::uint64_t>{3, 3, 3, 7, 7}) : std::vector<std::uint64_t>{});
  }
}

TEST(ClockNode, IsBusyFromTheTurnToTheLastPong) {
  ClockNode parent({.rank = Rank{0}}, {}), child({.rank = Rank{1}}, {.first_ping_pongs = 2});
  Outbox outbox;
  child.step(0, outbox);
  EXPECT_FALSE(child.busy()) << "others may be before us";
  EXPECT_FALSE(parent.busy());
  parent.take(Rank{1}, Ask{1}, 0, outbox);
  child.take(Rank{0}, Turn{1}, 0, outbox);
  child.take(Rank{0}, Pong{1, 1, 2}, 3, outbox);
  EXPECT_TRUE(child.busy());
  EXPECT_TRUE(parent.busy());
  child.take(Rank{0}, Pong{1, 4, 5}, 6, outbox);
  ASSERT_TRUE(std::holds_alternative<End>(outbox.back().record));
  parent.take(Rank{1}, outbox.back().record, 0, outbox);
  EXPECT_FALSE(child.busy());
  EXPECT_FALSE(parent.busy());
}

TEST(ClockNode, ComputesNothingWithNumbersThatNoClockHas) {
  ClockNode node({.rank = Rank{1}}, {});
  Outbox outbox;
  node.step(0, outbox);
  const clock::GlobalClock nonsense({.rate = std::numeric_limits<double>::quiet_NaN()});
  node.take(Rank{0}, Turn{1, nonsense, {}}, 0, outbox);
  EXPECT_FALSE(node.measuring());
  node.take(Rank{2}, Turn{1}, 0, outbox);
  EXPECT_FALSE(node.measuring()) << "nor with those of a rank that is not its parent";
}

TEST(ClockRecords, AreReadBackAndOtherSizesRefused) {
  const Record record = Turn{7, clock::GlobalClock({.origin_ns = 3, .rate = 1e-5}), {SharedCounter::tsc, {1, 2, 3}}};
  const PackedRecord packed(record);
  const auto back = read_record(packed.bytes());
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(std::get<Turn>(*back).attempt, 7U);
  EXPECT_EQ(std::get<Turn>(*back).to_reference.terms().origin_ns, 3);
  EXPECT_EQ(std::get<Turn>(*back).counter.scale.multiplier, 3);
  EXPECT_FALSE(read_record(packed.bytes().subspan(1)).has_value());
  EXPECT_FALSE(read_record(packed.bytes().first(packed.bytes().size() - 1)).has_value());
  EXPECT_FALSE(read_record(packed.bytes().first(3)).has_value());
  EXPECT_FALSE(read_record(std::as_bytes(std::span("there is no such kind"))).has_value());
}

}  // namespace
}  // namespace tandem::comm::internal::sync::clock_node_test
