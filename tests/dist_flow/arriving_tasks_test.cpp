// tests/dist_flow/arriving_tasks_test.cpp: cores that wait for an urgent task whose message comes, where a policy
// places tasks (`PullingPolicy::holds`).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "deterministic_job.hpp"
#include "tandem/api/world.hpp"
#include "tandem/base/sanitizers.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/sched/placing/placer.hpp"
#include "tests/environment.hpp"

namespace tandem::dist_test::arriving_tasks_test {
namespace {

constexpr std::uint32_t kRanks = 2;
constexpr std::size_t kNumbers = 125'000;
constexpr unsigned kSteps = 60, kUpdates = 60;

struct Flow {
  unsigned cores = 2;    ///< of each rank
  double message_ms = 1;  ///< of a vector
  double update_ms = 4;  ///< on a core
  double card_gain = 1;  ///< how many times faster a card is with it; of steps it takes ten times as long
};

struct Result {
  double ms = 0;            ///< of all of it
  std::uint64_t holds = 0;  ///< of all workers, in the second run
};

/// Two ranks with a card each. They pass a vector to each other, with an urgent task on it at each step, and each has
/// long tasks besides.
Result play(const Flow& flow, const std::string& sched, bool incoming, std::uint64_t seed) {
  JobSetup setup{.ranks = kRanks, .caller = false, .sched = sched};
  setup.network = {.ranks_per_host = 1, .latency_min_ns = 20'000, .latency_max_ns = 20'000,
                   .bytes_per_ns = kNumbers * sizeof(double) / (flow.message_ms * 1e6)};
  setup.adjust = [&](std::uint32_t, TestWorldOptions& world) {
    world.workers = flow.cores;
    world.devices = 1;
    world.link = runtime::MachineLink{.bytes_per_ns = 100, .latency_ns = 1'000};
  };
  setup.flow.transfers.incoming = incoming;
  setup.core.poll_for_ns = 0;
  setup.core.emulation = [&](const runtime::EmulatedTask& task) -> std::optional<runtime::EmulatedWork> {
    const bool is_core = task.device == DeviceKind::cpu;
    if (task.codelet == std::string_view("step")) return is_core ? 500'000 : 5'000'000;
    if (task.codelet == std::string_view("update"))
      return static_cast<std::int64_t>(flow.update_ms * 1e6 / (is_core ? 1 : flow.card_gain));
    return 1'000;
  };
  Result result;
  std::array<std::uint64_t, kRanks> before{}, after{};
  DeterministicJob job(seed);
  const DeterministicJob::Outcome outcome = job.run(setup, [&](Runtime& rt, DeterministicJob& running) {
    const Codelet step = on_all("step", [](std::span<const double>, std::span<double>) {});
    const Codelet update = on_all("update", [](std::span<double>) {});
    std::vector<Data<Vector<double>>> passed;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
      passed.push_back(rt.vector<double>("passed", kNumbers, {.owner = rank}));
    std::vector<Data<Vector<double>>> own;
    for (unsigned i = 0; i < kUpdates * kRanks; ++i) own.push_back(rt.vector<double>("own", 8, {.owner = i % kRanks}));
    const Codelet begin("begin", [](std::span<double>) {});
    for (const auto& data : passed) rt.submit(begin, write(data));
    for (const auto& data : own) rt.submit(begin, write(data));
    const auto holds = [&] {
      std::uint64_t sum = 0;
      for (const runtime::WorkerReport& worker : rt.statistics().workers) sum += worker.holds;
      return sum;
    };
    for (const bool is_measured : {false, true}) {
      rt.wait();
      before[rt.rank()] = holds();
      const std::int64_t began_ns = running.loop().now_ns();
      for (unsigned i = 0; i < kSteps; ++i)
        rt.submit({.priority = 1}, step, read(passed[(i + 1) % kRanks]), write(passed[i % kRanks]));
      for (const auto& data : own) rt.submit(update, read_write(data));
      rt.wait();
      after[rt.rank()] = holds();
      if (is_measured) result.ms = std::max(result.ms, static_cast<double>(running.loop().now_ns() - began_ns) * 1e-6);
    }
  });
  EXPECT_FALSE(outcome.stuck) << outcome.why;
  for (const Ending& ending : outcome.endings) EXPECT_EQ(ending.error, "");
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) result.holds += after[rank] - before[rank];
  return result;
}

TEST(ArrivingTasks, CoresWaitForUrgentOnesWhoseMessageComes) {
  constexpr std::uint64_t kSeeds = 1;
  std::printf("told of messages that come / not told, in time\n%-12s %5s %10s %9s %9s %7s %6s\n", "scheduler", "cores",
              "message ms", "update ms", "card gain", "ratio", "holds");
  for (const char* const sched : {"plan", "heteroprio", "darts"}) {
    double log_sum = 0, worst = 0;
    unsigned flows = 0;
    std::uint64_t all_holds = 0;
    for (const unsigned cores : base::under_sanitizer ? std::vector{2U} : std::vector{1U, 2U, 6U})
      for (const double message_ms : {0.5, 1.0, 2.0})
        for (const double update_ms : {2.0, 8.0})
          for (const double card_gain : {0.5, 4.0}) {
            const Flow flow{cores, message_ms, update_ms, card_gain};
            double with_ms = 0, without_ms = 0;
            std::uint64_t holds = 0;
            for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
              const Result with = play(flow, sched, true, seed), without = play(flow, sched, false, seed);
              EXPECT_EQ(without.holds, 0U);
              with_ms += with.ms;
              without_ms += without.ms;
              holds += with.holds;
            }
            const double ratio = with_ms / without_ms;
            std::printf("%-12s %5u %10.1f %9.0f %9.1f %7.3f %6llu\n", sched, cores, message_ms, update_ms, card_gain,
                        ratio, static_cast<unsigned long long>(holds));
            log_sum += std::log(ratio);
            worst = std::max(worst, ratio);
            all_holds += holds;
            ++flows;
          }
    std::printf("%-12s mean %.3f, worst %.3f, %llu holds\n", sched, std::exp(log_sum / flows), worst,
                static_cast<unsigned long long>(all_holds));
    EXPECT_GT(all_holds, 0U) << sched;
    EXPECT_LT(std::exp(log_sum / flows), 1) << sched;
  }
}

/// Random tasks of three kinds on vectors of all ranks, in several waits: whoever waits goes on, also where messages
/// are late since others share the network. Returns the holds.
std::uint64_t play_random(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t count) { return random() % count; };
  JobSetup setup{.ranks = static_cast<std::uint32_t>(2 + below(2)), .caller = below(3) == 0,
                 .sched = std::array{"plan", "heteroprio", "darts"}[below(3)]};
  setup.network = {.ranks_per_host = 1,
                   .latency_min_ns = 1'000,
                   .latency_max_ns = 100'000,
                   .bytes_per_ns = 0.2 + 0.1 * static_cast<double>(below(10))};
  const unsigned cores = static_cast<unsigned>(1 + below(3)), cards = static_cast<unsigned>(1 + below(2));
  setup.adjust = [&](std::uint32_t, TestWorldOptions& world) {
    world.workers = cores;
    world.devices = cards;
  };
  setup.core.poll_for_ns = below(2) == 0 ? 0 : 50'000;
  std::array<std::int64_t, 3> on_core_ns{}, on_card_ns{};
  for (std::size_t kind = 0; kind < 3; ++kind) {
    // those of kind 0 are urgent
    on_core_ns[kind] = static_cast<std::int64_t>((kind == 0 ? 20'000 : 1'000'000) << below(5));
    on_card_ns[kind] = static_cast<std::int64_t>((kind == 0 ? 100'000 : 1'000'000) << below(6));
  }
  setup.core.emulation = [&](const runtime::EmulatedTask& task) -> std::optional<runtime::EmulatedWork> {
    const std::size_t kind = task.codelet.back() - '0';
    return (task.device == DeviceKind::cpu ? on_core_ns : on_card_ns)[kind];
  };
  constexpr std::size_t kVectors = 30, kShort = 30;
  const std::size_t waits = 2 + below(3), tasks = 100 + below(200);
  std::vector<std::uint32_t> owners;
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < kVectors; ++i) {
    owners.push_back(static_cast<std::uint32_t>(below(setup.ranks)));
    sizes.push_back(std::size_t{1000} << below(8));
  }
  const std::uint64_t flow = random();
  std::uint64_t ran = 0, holds = 0;
  const DeterministicJob::Outcome outcome = DeterministicJob(seed).run(setup, [&](Runtime& rt, DeterministicJob& job) {
    const auto body = [](std::span<const double>, std::span<double>) {};
    const std::array codelets{on_all("kind 0", body), on_all("kind 1", body), on_all("kind 2", body)};
    std::vector<Data<Vector<double>>> vectors, short_ones;
    for (std::size_t i = 0; i < kVectors; ++i)
      vectors.push_back(rt.vector<double>("vector", sizes[i], {.owner = owners[i]}));
    for (std::uint32_t i = 0; i < kShort; ++i)
      short_ones.push_back(rt.vector<double>("short", 10, {.owner = i % rt.size()}));
    for (const auto& vector : short_ones) rt.submit(Codelet("begin 0", [](std::span<double>) {}), write(vector));
    for (const auto& vector : vectors) rt.submit(Codelet("begin 0", [](std::span<double>) {}), write(vector));
    std::mt19937_64 draw(flow);
    for (std::size_t wait = 0; wait < waits; ++wait) {
      for (std::size_t i = 0; i < tasks; ++i) {
        const std::size_t vector = draw() % kVectors, short_one = draw() % kShort, kind = draw() % 3;
        const int urgency = static_cast<int>(1 + draw() % 3);
        if (kind == 0)
          rt.submit({.priority = urgency}, codelets[kind], read(vectors[vector]), write(short_ones[short_one]));
        else rt.submit(codelets[kind], read(short_ones[short_one]), read_write(vectors[vector]));
        job.maybe_yield();
      }
      rt.wait();
      EXPECT_TRUE(rt.core().executor().placer()->check_invariants()) << "ARRIVING_TASKS_SEED=" << seed;
    }
    for (const runtime::WorkerReport& worker : rt.statistics().workers) {
      ran += worker.tasks;
      holds += worker.holds;
    }
  });
  EXPECT_FALSE(outcome.stuck) << outcome.why << "; ARRIVING_TASKS_SEED=" << seed;
  for (const Ending& ending : outcome.endings) EXPECT_EQ(ending.error, "") << "ARRIVING_TASKS_SEED=" << seed;
  EXPECT_GE(ran, kVectors + kShort + waits * tasks) << "ARRIVING_TASKS_SEED=" << seed;
  return holds;
}

/// ARRIVING_TASKS_SEED=n plays the flow of that seed alone, ARRIVING_TASKS_COUNT=n so many.
TEST(ArrivingTasks, RandomFlowsEnd) {
  if (const auto only = static_cast<unsigned>(test::number_of("ARRIVING_TASKS_SEED", 0)); only != 0) {
    play_random(only);
    return;
  }
  std::uint64_t holds = 0;
  const auto count = static_cast<unsigned>(test::number_of("ARRIVING_TASKS_COUNT", base::under_sanitizer ? 12 : 60));
  for (std::uint64_t seed = 1; seed <= count && !testing::Test::HasFailure(); ++seed) holds += play_random(seed);
  EXPECT_GT(holds, count / 10);
  std::printf("%u flows, %llu holds\n", count, static_cast<unsigned long long>(holds));
}

}  // namespace
}  // namespace tandem::dist_test::arriving_tasks_test
