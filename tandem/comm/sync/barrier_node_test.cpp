// tandem/comm/sync/barrier_node_test.cpp: barriers among simulated ranks: no rank leaves early, deaths are reported.
#include "tandem/comm/sync/barrier_node.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/comm/sync/simulated_ranks.hpp"

namespace tandem::comm::internal::sync::barrier_node_test {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;

/// All ranks enter at random times within `spread_ns`. True if all ended, by agreement or break, within ten seconds.
bool barrier_of_all(SimulatedRanks& ranks, std::mt19937& random, std::int64_t spread_ns) {
  std::uniform_int_distribution<std::int64_t> wait(0, spread_ns);
  std::uint32_t entered = 0;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
    ranks.at(ranks.now_ns() + wait(random), [&ranks, &entered, rank] { ranks.enter_barrier(rank), ++entered; });
  return ranks.run(ranks.now_ns() + 10 * second_ns, [&] {
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
      if (ranks.barrier(rank).inside()) return false;
    return entered == ranks.size();
  });
}

TEST(BarrierNode, ARankAloneAgreesWithItself) {
  SimulatedRanks ranks(1, {{}});
  ranks.run(1'000);
  ranks.enter_barrier(0);
  ASSERT_TRUE(ranks.barrier(0).agreement().has_value());
  EXPECT_GE(ranks.barrier(0).agreement()->local_ns, 1'000);
}

TEST(BarrierNode, AllRanksAgreeOnOneTimeThatComesAfterTheLastHasEntered) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    SimulatedRanks ranks(seed, assorted_drifts(1 + seed % 13, seed));
    ranks.run(3 * second_ns);
    for (int repetition = 0; repetition < 5; ++repetition) {
      const std::int64_t spread_ns = 300'000;
      ASSERT_TRUE(barrier_of_all(ranks, random, spread_ns)) << "seed " << seed;
      const BarrierAgreement reference = *ranks.barrier(0).agreement();
      for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
        const BarrierAgreement agreement = *ranks.barrier(rank).agreement();
        ASSERT_EQ(agreement.global_ns, reference.global_ns) << "seed " << seed;
        // The rank waits for that instant, up to its own error.
        const clock::GlobalTime back = ranks.node(rank).to_reference().to_global(agreement.local_ns);
        ASSERT_LE(std::abs(back.ns - agreement.global_ns), 2 + agreement.error_ns);
        ASSERT_GE(agreement.global_ns + agreement.error_ns + agreement.late_ns, ranks.true_global_ns() - 1'000'000);
      }
    }
  }
}

TEST(BarrierNode, AWindowThatWasTooShortIsProposedAgainLonger) {
  SimulatedRanks::Options options;
  options.least_delay_ns = 500'000;  // one way takes longer than the first window
  SimulatedRanks ranks(2, assorted_drifts(8, 2), options);
  ranks.run(5 * second_ns);
  std::mt19937 random(2);
  for (int repetition = 0; repetition < 3; ++repetition) {
    ASSERT_TRUE(barrier_of_all(ranks, random, 0));
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) EXPECT_EQ(ranks.barrier(rank).agreement()->late_ns, 0);
  }
}

TEST(BarrierNode, ARankThatWasNotRunningLeavesLateAndIsNotified) {
  SimulatedRanks::Options options;
  options.sleepy_share = 0;
  SimulatedRanks ranks(4, assorted_drifts(2, 4), options);
  ranks.run(3 * second_ns);
  ranks.enter_barrier(1);
  ranks.run(ranks.now_ns() + 10'000);
  ranks.enter_barrier(0);
  ranks.run(ranks.now_ns() + 700);  // the vote is on its way
  ranks.stop_until(1, ranks.now_ns() + 50'000'000);
  ASSERT_TRUE(ranks.run(ranks.now_ns() + second_ns,
                        [&] { return !ranks.barrier(0).inside() && !ranks.barrier(1).inside(); }));
  EXPECT_EQ(ranks.barrier(0).agreement()->late_ns, 0);
  EXPECT_GT(ranks.barrier(1).agreement()->late_ns, 40'000'000);
  EXPECT_EQ(ranks.barrier(0).agreement()->global_ns, ranks.barrier(1).agreement()->global_ns);
}

TEST(BarrierNode, TheDeathOfARankBreaksTheBarrierOfAll) {
  for (std::uint32_t dead = 0; dead < 8; ++dead) {
    SimulatedRanks ranks(dead + 1, assorted_drifts(8, dead + 1));
    ranks.run(3 * second_ns);
    ranks.kill(dead);
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
      if (rank != dead) ranks.enter_barrier(rank);
    const auto all_notified = [&] {
      for (std::uint32_t rank = 0; rank < ranks.size(); ++rank)
        if (rank != dead && ranks.barrier(rank).inside()) return false;
      return true;
    };
    // Ranks below the dead one learn it by their own repetitions.
    ASSERT_TRUE(ranks.run(ranks.now_ns() + second_ns, all_notified)) << "rank " << dead << " died";
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
      if (rank != dead) {
        EXPECT_EQ(ranks.barrier(rank).broken()->rank, Rank{dead});
      }
    }
  }
}

TEST(BarrierNode, IgnoresRecordsOfStrangersAndOfThePast) {
  BarrierNode node(Rank{1}, 4);
  Outbox outbox;
  const clock::GlobalClock clock;
  node.take(Rank{0}, Propose{1, 1, 100}, 0, clock, outbox);  // not inside
  node.take(Rank{0}, Commit{1, 100}, 0, clock, outbox);
  node.take(Rank{2}, Broken{0, 0}, 0, clock, outbox);  // not a neighbour
  EXPECT_TRUE(outbox.empty());
  EXPECT_FALSE(node.broken().has_value());
  node.enter(0, clock, outbox);
  node.take(Rank{2}, Ready{1}, 0, clock, outbox);
  EXPECT_TRUE(outbox.empty()) << "rank 3 is its child, not rank 2";
  node.take(Rank{3}, Ready{1}, 0, clock, outbox);
  ASSERT_EQ(outbox.size(), 1U);
  EXPECT_EQ(outbox.front().to, Rank{0});
}

}  // namespace
}  // namespace tandem::comm::internal::sync::barrier_node_test
