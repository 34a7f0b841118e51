// tandem/analysis/verdict/efficiency_test.cpp: the factors of runs that were computed by hand, and that they multiply
// to the whole.
#include "tandem/analysis/verdict/efficiency.hpp"

#include "tandem/analysis/bounds/replay.hpp"
#include "tandem/analysis/history/random_run.hpp"

namespace tandem::analysis::efficiency_test {
namespace {

using test::RandomRun;

/// Workers that executed for these times in a makespan of 1000 ns that began at 50.
TimeSplit split_of(const std::vector<std::pair<std::uint32_t, std::int64_t>>& rank_and_useful_ns) {
  TimeSplit split{.makespan_ns = 1000, .begin_ns = 50, .workers = {}};
  for (const auto& [rank, ns] : rank_and_useful_ns) {
    WorkerTimes worker{.rank = rank};
    worker.ns[static_cast<std::size_t>(Spent::executing)] = ns;
    split.workers.push_back(worker);
  }
  return split;
}

TEST(Efficiency, TheFactorsAreThoseOfPop) {
  const auto result = efficiency(split_of({{0, 600}, {0, 400}, {1, 300}, {1, 300}}), 850);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->ideal_makespan_ns, 800);
  EXPECT_DOUBLE_EQ(result->parallel, 0.4);
  EXPECT_DOUBLE_EQ(result->load_balance, 400.0 / 600);
  EXPECT_DOUBLE_EQ(result->serialisation, 600.0 / 800);
  EXPECT_DOUBLE_EQ(result->transfer, 0.8);
  EXPECT_DOUBLE_EQ(result->across_ranks, 400.0 / 500);
  EXPECT_DOUBLE_EQ(result->within_ranks, 500.0 / 600);
  ASSERT_EQ(result->ranks.size(), 2u);
  EXPECT_EQ(result->ranks[0].workers, 2u);
  EXPECT_EQ(result->ranks[0].useful_ns, 1000);
  EXPECT_DOUBLE_EQ(result->ranks[0].parallel, 0.5);
  EXPECT_DOUBLE_EQ(result->ranks[1].load_balance, 1);
  EXPECT_DOUBLE_EQ(result->ranks[1].serialisation, 300.0 / 800);
}

TEST(Efficiency, AWorkerThatNeverRestedLeavesNothingToTheNetwork) {
  const auto result = efficiency(split_of({{0, 1000}, {0, 0}}), 60);
  ASSERT_TRUE(result);
  EXPECT_DOUBLE_EQ(result->transfer, 1);
  EXPECT_DOUBLE_EQ(result->serialisation, 1);
  EXPECT_DOUBLE_EQ(result->load_balance, 0.5);
}

TEST(Efficiency, NothingHasRun) {
  EXPECT_FALSE(efficiency(split_of({{0, 0}, {1, 0}}), 0));
  EXPECT_FALSE(efficiency(TimeSplit(), 0));
}

TEST(Efficiency, ARankThatHasRunNothingIsBalanced) {
  const auto result = efficiency(split_of({{0, 500}, {1, 0}}), 1050);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->ranks[1].parallel, 0);
  EXPECT_EQ(result->ranks[1].load_balance, 1);
}

TEST(Efficiency, FactorsOfRandomRunsMultiplyToTheWhole) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const auto history = RandomRun(seed, 1 + seed % 3).read();
    const auto result = efficiency(split_time(*history), replay_end_ns(*history, TaskGraph(*history), Messages::free));
    ASSERT_TRUE(result);
    const auto check = [&](const Efficiency& part) {
      EXPECT_NEAR(part.load_balance * part.serialisation * part.transfer, part.parallel, 1e-12) << "seed " << seed;
      for (const double factor : {part.parallel, part.load_balance, part.serialisation, part.transfer}) {
        EXPECT_GE(factor, 0) << "seed " << seed;
        EXPECT_LE(factor, 1) << "seed " << seed;
      }
    };
    check(*result);
    EXPECT_NEAR(result->across_ranks * result->within_ranks, result->load_balance, 1e-12) << "seed " << seed;
    double useful_ns = 0;
    for (const RankEfficiency& rank : result->ranks) {
      check(rank);
      useful_ns += static_cast<double>(rank.useful_ns);
    }
    const TimeSplit split = split_time(*history);
    EXPECT_NEAR(useful_ns / static_cast<double>(split.makespan_ns) / static_cast<double>(split.workers.size()),
                result->parallel, 1e-12);
  }
}

}  // namespace
}  // namespace tandem::analysis::efficiency_test
