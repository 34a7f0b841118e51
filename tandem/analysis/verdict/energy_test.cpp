// tandem/analysis/verdict/energy_test.cpp: joules of a run, of its counters and of its kernels.
#include "tandem/analysis/verdict/energy.hpp"

#include <cstdint>
#include <random>

#include "tandem/analysis/history/small_run.hpp"

namespace tandem::analysis::energy_test {
namespace {

using test::at;
using test::SmallRun;
using trace::Type;

constexpr std::int64_t kMs = 1'000'000;

TEST(RunEnergy, IsThatOfItsCounters) {
  SmallRun run(2);
  run.usual(0).usual(1);
  run.catalogue(0).add(Type::name, at(0), {0, 6, "0-1 package-0"}).add(Type::name, at(0), {1, 6, "0-1 package-0 dram"});
  run.catalogue(1).add(Type::name, at(0), {0, 6, "0-1 package-0"});
  run.stream(0, 1).add(Type::task_submitted, at(0),
                       {9, 0, 0, 0, 0, std::vector<std::uint32_t>{}, std::vector<std::uint32_t>{}});
  run.stream(1, 1).add(Type::task_submitted, at(0),
                       {9, 0, 0, 0, 0, std::vector<std::uint32_t>{}, std::vector<std::uint32_t>{}});
  for (int i = 1; i <= 4; ++i) {
    run.stream(0, 5)
        .add(Type::energy, at(i * 50 * kMs), {0, 5.0, 50 * kMs})
        .add(Type::energy, at(i * 50 * kMs + 2'000), {1, 1.0, 50 * kMs});
    run.stream(1, 5).add(Type::energy, at(i * 50 * kMs), {0, 2.5, 50 * kMs});
  }
  const auto history = run.read();
  const RunEnergy energy = RunEnergy::of(*history);
  ASSERT_EQ(energy.counters.size(), 3u);
  EXPECT_DOUBLE_EQ(energy.joules, 34);
  double of_ranks[2] = {0, 0};
  for (const RunEnergy::Counter& counter : energy.counters) {
    of_ranks[counter.rank] += counter.joules;
    EXPECT_NEAR(counter.seconds, 0.2, 1e-4);
    EXPECT_TRUE(counter.name == "package-0" || counter.name == "package-0 dram") << counter.name;
  }
  EXPECT_DOUBLE_EQ(of_ranks[0], 24);
  EXPECT_DOUBLE_EQ(of_ranks[1], 10);
  ASSERT_EQ(energy.kinds.size(), 1u);
  EXPECT_DOUBLE_EQ(energy.kinds[0].joules, 34);
  // The mean power of an interval is a value that holds from the interval's beginning on.
  bool is_there = false;
  for (const ValueRow& row : history->counters)
    if (history->texts[row.name] == "power of package-0, W" && row.rank == 0 && row.time_ns == 50 * kMs) {
      is_there = true;
      EXPECT_NEAR(row.value, 100, 1e-6);
    }
  EXPECT_TRUE(is_there);
}

TEST(RunEnergy, IsSharedAmongKernelsByWhatRanInEachInterval) {
  SmallRun run;
  run.usual();
  run.catalogue().add(Type::name, at(0), {0, 6, "0-1 package-0"});
  // 20 W idle, 10 W for a potrf, 30 W for a gemm. A task may lie in several intervals.
  std::mt19937 random(5);
  constexpr int kIntervals = 200;
  std::vector<double> joules(kIntervals, 20 * 0.05);
  std::uint32_t task = 1;
  double of_potrf = 0, of_gemm = 0;
  for (std::uint32_t worker = 2; worker <= 3; ++worker)
    for (std::int64_t ns = 0;;) {
      ns += static_cast<std::int64_t>(random() % 60) * kMs;
      const std::int64_t end_ns = ns + static_cast<std::int64_t>(1 + random() % 120) * kMs;
      if (end_ns >= kIntervals * 50 * kMs) break;
      const bool is_gemm = random() % 2 == 0;
      run.submit(0, 0, task, is_gemm ? 1 : 0).execute(0, worker, task, ns, end_ns);
      ++task;
      for (std::int64_t i = ns / (50 * kMs); i * 50 * kMs < end_ns; ++i) {
        const double seconds =
            1e-9 * static_cast<double>(std::min(end_ns, (i + 1) * 50 * kMs) - std::max(ns, i * 50 * kMs));
        joules[static_cast<std::size_t>(i)] += seconds * (is_gemm ? 30 : 10);
        (is_gemm ? of_gemm : of_potrf) += seconds * (is_gemm ? 30 : 10);
      }
      ns = end_ns;
    }
  for (int i = 0; i < kIntervals; ++i)
    run.stream(0, 5).add(
        Type::energy, at((i + 1) * 50 * kMs),
        {0, joules[static_cast<std::size_t>(i)] * (1 + 0.02 * (static_cast<int>(random() % 3) - 1)), 50 * kMs});
  const auto history = run.read();
  const RunEnergy energy = RunEnergy::of(*history);
  ASSERT_EQ(energy.kernels.size(), 2u);
  EXPECT_EQ(energy.kernels[0].codelet, "gemm");
  EXPECT_EQ(energy.kernels[0].kind, "cpu");
  EXPECT_NEAR(energy.kernels[0].watts.watts, 30, 1.5);
  EXPECT_NEAR(energy.kernels[1].watts.watts, 10, 1.5);
  EXPECT_NEAR(energy.kinds.at(0).idle.watts, 20, 2);
  EXPECT_NEAR(energy.kernels[0].joules, of_gemm, 0.05 * of_gemm);
  EXPECT_NEAR(energy.kernels[1].joules, of_potrf, 0.15 * of_potrf);
  EXPECT_NEAR(energy.kernels[0].joules + energy.kernels[1].joules + energy.kinds[0].idle_joules, energy.joules,
              0.02 * energy.joules);
  EXPECT_GT(energy.kernels[0].watts.confidence(), 0.8);
}

TEST(RunEnergy, NothingWasRecorded) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0).execute(0, 2, 1, 0, 10);
  const auto history = run.read();
  const RunEnergy energy = RunEnergy::of(*history);
  EXPECT_TRUE(energy.counters.empty());
  EXPECT_EQ(energy.joules, 0);
}

TEST(RunEnergy, ACounterWithoutAKnownNameCountsForNoWorkers) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0).execute(0, 2, 1, 0, 10 * kMs);
  run.stream(0, 5).add(Type::energy, at(50 * kMs), {7, 5.0, 50 * kMs}).add(Type::energy, at(60 * kMs), {7, 5.0, 0});
  const auto history = run.read();
  const RunEnergy energy = RunEnergy::of(*history);
  EXPECT_EQ(energy.joules, 5);
  EXPECT_TRUE(energy.kernels.empty());
}

}  // namespace
}  // namespace tandem::analysis::energy_test
