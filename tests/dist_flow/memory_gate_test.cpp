// tests/dist_flow/memory_gate_test.cpp: flows whose kernels and messages share memory, with and without the gate, on
// machines of the thesis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "deterministic_job.hpp"
#include "tandem/api/memory_contention.hpp"
#include "tandem/api/world.hpp"
#include "tandem/base/sanitizers.hpp"
#include "tandem/model/contention/platforms.hpp"
#include "tandem/model/contention/threshold_model.hpp"
#include "tandem/runtime/device/modelled_memory.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/sched/contention/memory_gate.hpp"
#include "tests/environment.hpp"

namespace tandem::dist_test::memory_gate_test {
namespace {

using model::contention::Placement;
using model::contention::ThresholdModel;

constexpr std::uint32_t kRanks = 4;
/// Bytes of data in the tests stand for so many, since they are copied.
constexpr double kScale = 256;

/// Data of kernels and messages of all hosts on such NUMA nodes of a machine of the thesis.
struct Machine {
  std::string name;
  Placement placement;
  const model::contention::Platform& platform() const { return *model::contention::find_platform(name); }
  unsigned workers() const { return platform().cores_per_socket - 1; }
};

/// All hosts of a job: their memories, and their network.
class Hosts final : public comm::LoopRates {
 public:
  Hosts(const Machine& machine, base::EventLoop& loop) : model_(machine.platform().machine) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
      memories_.push_back(std::make_unique<runtime::ModelledMemory>(model_, machine.placement, loop));
  }
  double bytes_per_ns(comm::Rank from, comm::Rank to) override {
    return std::min(of(from).network_bytes_per_ns(), of(to).network_bytes_per_ns()) / kScale;
  }
  void note_packet(comm::Rank from, comm::Rank to, std::int64_t until_ns) override {
    of(from).use_network_until(until_ns);
    of(to).use_network_until(until_ns);
  }
  const ThresholdModel& model() const { return model_; }
  std::vector<runtime::ModelledMemory*> memories() const {
    std::vector<runtime::ModelledMemory*> all;
    for (const auto& memory : memories_) all.push_back(memory.get());
    return all;
  }

 private:
  runtime::ModelledMemory& of(comm::Rank rank) { return *memories_[rank.value()]; }

  ThresholdModel model_;
  std::vector<std::unique_ptr<runtime::ModelledMemory>> memories_;
};

struct Flow {
  std::string name;
  std::function<void(Runtime&)> submit;
};

constexpr double kTileBytes = 32e6;
using Tile = Data<Vector<double>>;

const Codelet fill("fill", [](std::span<double>) {});
const auto panel = on_all("panel", [](std::span<double>) {});
const auto update = on_all("update", [](std::span<const double>, std::span<double>) {});
const auto product = on_all("product", [](std::span<const double>, std::span<double>) {});
const Codelet reduce_codelet("sum", [](std::span<const double>, double&) {});
const Codelet combine("combine", [](const double&, double&) {});
const Codelet axpy("axpy", [](const double&, std::span<double>) {});
const Codelet zero("zero", [](double&) {});
const auto compute = on_all("compute", [](std::span<double>) {});

Tile tile_of(Runtime& rt, std::uint32_t owner, double bytes = kTileBytes) {
  auto tile = rt.vector<double>("tile", static_cast<std::size_t>(bytes / kScale / sizeof(double)), {.owner = owner});
  rt.submit(fill, write(tile));
  return tile;
}

/// Each step makes a tile, sends it to all, and updates the tiles of all ranks with it, `per_rank` each; the next
/// step's first.
void updates(Runtime& rt, unsigned steps, unsigned per_rank, unsigned computing) {
  std::vector<Tile> panels;
  for (unsigned k = 0; k < steps; ++k) panels.push_back(tile_of(rt, k % kRanks));
  std::vector<std::vector<Tile>> tiles(kRanks), others(kRanks);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    for (unsigned i = 0; i < per_rank; ++i) tiles[rank].push_back(tile_of(rt, rank));
    for (unsigned i = 0; i < computing; ++i) others[rank].push_back(tile_of(rt, rank, 1e6));
  }
  for (unsigned k = 0; k < steps; ++k) {
    rt.submit({.priority = 3}, panel, read_write(panels[k]));
    if (k + 1 < steps) rt.submit({.priority = 2}, update, read(panels[k]), read_write(panels[k + 1]));
    for (unsigned i = 0; i < std::max(per_rank, computing); ++i)
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        if (i < per_rank) rt.submit({.priority = 0}, update, read(panels[k]), read_write(tiles[rank][i]));
        if (i < computing) rt.submit({.priority = 0}, compute, read_write(others[rank][i]));
      }
  }
}

/// Iterations of products of each rank's rows with a vector whose blocks come from all ranks, then a sum over all ranks
/// and an update of the blocks. The product of a block can begin when that block has come.
void conjugate_gradients(Runtime& rt, unsigned iterations, unsigned rows, double block_bytes) {
  std::vector<Tile> blocks;
  std::vector<std::vector<Tile>> results(kRanks);
  std::vector<Data<double>> sums;
  auto total = rt.scalar<double>("total", {.owner = 0});
  rt.submit(zero, write(total));
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    blocks.push_back(tile_of(rt, rank, block_bytes));
    rt.submit(zero, write(sums.emplace_back(rt.scalar<double>("sum", {.owner = rank}))));
    for (unsigned i = 0; i < rows; ++i) results[rank].push_back(tile_of(rt, rank));
  }
  for (unsigned iteration = 0; iteration < iterations; ++iteration) {
    for (std::uint32_t from = 0; from < kRanks; ++from)
      for (unsigned i = 0; i < rows; ++i)
        for (std::uint32_t rank = 0; rank < kRanks; ++rank)
          rt.submit({.priority = 0}, product, read(blocks[(rank + from) % kRanks]), read_write(results[rank][i]));
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      for (unsigned i = 0; i < rows; ++i)
        rt.submit({.priority = 2}, reduce_codelet, read(results[rank][i]), read_write(sums[rank]));
      rt.submit({.priority = 3}, combine, read(sums[rank]), read_write(total));
    }
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
      rt.submit({.priority = 3}, axpy, read(total), read_write(blocks[rank]));
  }
}

const std::vector<Flow>& flows() {
  static const std::vector<Flow> known{
      {"tile broadcasts, 10 updates", [](Runtime& rt) { updates(rt, 16, 10, 0); }},
      {"tile broadcasts, 20 updates", [](Runtime& rt) { updates(rt, 16, 20, 0); }},
      {"tile broadcasts, 40 updates", [](Runtime& rt) { updates(rt, 16, 40, 0); }},
      {"half of them compute", [](Runtime& rt) { updates(rt, 16, 10, 10); }},
      {"two thirds compute", [](Runtime& rt) { updates(rt, 16, 10, 20); }},
      {"CG, long vectors", [](Runtime& rt) { conjugate_gradients(rt, 6, 17, 64e6); }},
      {"CG", [](Runtime& rt) { conjugate_gradients(rt, 6, 17, 16e6); }},
      {"CG, short vectors", [](Runtime& rt) { conjugate_gradients(rt, 6, 17, 1e6); }},
  };
  return known;
}

/// What kernels take on a card, or alone on a core that moves `core_mb_s`.
runtime::EmulatedWork work_of(const runtime::EmulatedTask& task, double core_mb_s) {
  if (task.device != DeviceKind::cpu) return 4'000'000;
  const auto moving = [&](double bytes) {
    return runtime::EmulatedWork(static_cast<std::int64_t>(bytes / core_mb_s * 1e3), bytes);
  };
  if (task.codelet == "update") return moving(3 * kTileBytes);
  if (task.codelet == "product") return moving(2 * kTileBytes + kScale * static_cast<double>(task.data[0].bytes()));
  if (task.codelet == "sum") return moving(kTileBytes);
  if (task.codelet == "axpy") return moving(2 * kScale * static_cast<double>(task.data[1].bytes()));
  if (task.codelet == "panel") return moving(2 * kTileBytes);
  return task.codelet == "compute" ? 20'000'000 : 1'000;
}

runtime::MemoryGateRule rule_of(const Machine& machine) {
  const ThresholdModel model(machine.platform().machine);
  runtime::MemoryGateRule rule = memory_gate_rule(model, {.cores = machine.workers(), .placement = machine.placement});
  rule.least_bytes_per_ns /= kScale;
  rule.network_bytes_per_ns /= kScale;
  return rule;
}

runtime::MemoryShares shares_of(const Machine& machine) {
  runtime::MemoryShares shares = memory_shares(ThresholdModel(machine.platform().machine),
                                               {.cores = machine.workers(), .placement = machine.placement});
  shares.core_bytes_per_ns /= kScale;
  shares.stream_bytes_per_ns /= kScale;
  return shares;
}

/// The most that kernels move in a memory, in MB/s, whatever the number of cores and beside no messages.
double most_mb_s(const Machine& machine) {
  const ThresholdModel model(machine.platform().machine);
  double most = 0;
  for (unsigned cores = 1; cores <= machine.workers(); ++cores)
    most = std::max(most, model.predict({.cores = cores, .placement = machine.placement}).computation_alone_mb_s);
  return most;
}

struct Result {
  double ms = 0;
  /// Time in which the memories could serve the kernels if there were no messages, and no kernel ever waited.
  double bound_ms = 0;
  std::uint64_t put_aside = 0;  ///< times that a task waited for others
  Result& operator+=(const Result& other) {
    ms += other.ms;
    bound_ms += other.bound_ms;
    put_aside += other.put_aside;
    return *this;
  }
};

struct Way {
  std::string sched;
  runtime::MemoryGateRule rule = {};
  unsigned cards = 0;               ///< of each rank
  runtime::MemoryShares shares = {};  ///< what the policy knows
};

/// The second time that the flow is played: by then it is known how long tasks take, and how fast the network is.
Result play(const Machine& machine, const Flow& flow, const Way& way, std::uint64_t seed) {
  DeterministicJob job(seed);
  Hosts hosts(machine, job.loop());
  const model::contention::Bandwidths alone = hosts.model().predict({.cores = 1, .placement = machine.placement});
  JobSetup setup{.ranks = kRanks, .workers = machine.workers(), .caller = false, .sched = way.sched};
  setup.network = {.ranks_per_host = 1, .segment_bytes = 4096, .latency_min_ns = 2000, .latency_max_ns = 2000,
                   .bytes_per_ns = alone.communication_alone_mb_s * 1e-3 / kScale, .rates = &hosts};
  setup.memories = hosts.memories();
  setup.core.poll_for_ns = 0;
  setup.core.emulation = [&](const runtime::EmulatedTask& task) -> std::optional<runtime::EmulatedWork> {
    return work_of(task, alone.computation_alone_mb_s);
  };
  setup.core.memory_gate = way.rule;
  setup.core.memory_shares = way.shares;
  setup.adjust = [&](std::uint32_t rank, TestWorldOptions& world) {
    world.devices = way.cards;
    world.link = runtime::MachineLink{.bytes_per_ns = 12 / kScale, .latency_ns = 10'000};
    world.memory = setup.memories[rank];
  };
  Result result;
  const DeterministicJob::Outcome outcome = job.run(setup, [&](Runtime& rt, DeterministicJob& running) {
    flow.submit(rt);
    rt.wait();
    const std::int64_t began_ns = running.loop().now_ns();
    runtime::ModelledMemory& memory = *setup.memories[rt.rank()];
    const double before = memory.bytes();
    flow.submit(rt);
    rt.wait();
    result.bound_ms = std::max(result.bound_ms, (memory.bytes() - before) / most_mb_s(machine) * 1e-3);
    result.ms = static_cast<double>(running.loop().now_ns() - began_ns) * 1e-6;
    for (const runtime::WorkerReport& worker : rt.statistics().workers) result.put_aside += worker.put_aside;
  });
  EXPECT_FALSE(outcome.stuck) << outcome.why;
  for (const Ending& ending : outcome.endings) EXPECT_EQ(ending.error, "");
  return result;
}

/// GATE_SEEDS: so many orders of steps for each case.
TEST(DistMemoryGate, FlowsThatWaitForMemoryEndEarlierAndOthersNoLater) {
  const std::vector<Machine> machines{{"henri", {0, 0}},        {"henri", {1, 1}}, {"henrisubnuma", {0, 0}},
                                      {"henrisubnuma", {2, 2}}, {"billy", {1, 1}}, {"bora", {0, 0}}};
  const unsigned seeds = static_cast<unsigned>(test::number_of("GATE_SEEDS", 1));
  double log_sum = 0, worst = 0, best = 1;
  unsigned count = 0;
  std::printf("%-14s %-6s %-6s  %-30s %10s %10s %8s %8s %8s\n", "machine", "nodes", "most", "flow", "dmdas ms",
              "gated ms", "ratio", "bound", "aside");
  for (const Machine& machine : machines) {
    const runtime::MemoryGateRule rule = rule_of(machine);
    for (const Flow& flow : flows()) {
      Result blind, gated;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        blind += play(machine, flow, {"dmdas"}, seed);
        gated += play(machine, flow, {"dmdas", rule}, seed);
      }
      const double ratio = gated.ms / blind.ms;
      std::printf("%-14s %u, %u   %2u, %-2u  %-30s %10.1f %10.1f %8.3f %8.3f %8llu\n", machine.name.c_str(),
                  machine.placement.computation, machine.placement.communication,
                  std::min(rule.most, machine.workers()), std::min(rule.most_beside_messages, machine.workers()),
                  flow.name.c_str(), blind.ms / static_cast<double>(seeds), gated.ms / static_cast<double>(seeds),
                  ratio, blind.bound_ms / blind.ms, static_cast<unsigned long long>(gated.put_aside / seeds));
      if (!rule.limits(machine.workers())) {
        EXPECT_EQ(gated.put_aside, 0U);
        EXPECT_EQ(ratio, 1);
      }
      log_sum += std::log(ratio);
      ++count;
      worst = std::max(worst, ratio);
      best = std::min(best, ratio);
    }
  }
  const double mean = std::exp(log_sum / count);
  std::printf("%u cases: with the gate %.3f of the time without in the geometric mean, %.3f at best, %.3f at worst\n",
              count, mean, best, worst);
  EXPECT_LT(mean, 0.97);
  EXPECT_LT(best, 0.8);
  EXPECT_LT(worst, 1.05);
}

/// Each rank has a card, so a policy places tasks; it knows how kernels share memory, with the limit and without.
/// GATE_SEEDS as above.
TEST(DistMemoryGate, BesideCardsPlacedTasksEndEarlierInTheMean) {
  const std::vector<Machine> machines{
      {"henri", {0, 0}}, {"henri", {1, 1}}, {"henrisubnuma", {0, 0}}, {"henrisubnuma", {2, 2}}, {"billy", {1, 1}}};
  const unsigned seeds = static_cast<unsigned>(test::number_of("GATE_SEEDS", 1));
  double log_known = 0, log_gated = 0, worst = 0, best = 1;
  unsigned count = 0;
  std::printf("%-14s %-6s %-30s %10s %12s %8s %8s\n", "machine", "nodes", "flow", "dmdas ms", "by the model", "limited",
              "aside");
  for (const Machine& machine : machines) {
    const runtime::MemoryGateRule rule = rule_of(machine);
    const runtime::MemoryShares shares = shares_of(machine);
    for (const Flow& flow : flows()) {
      Result blind, known, gated;
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        blind += play(machine, flow, {"dmdas", {}, 1}, seed);
        known += play(machine, flow, {"dmdas", {}, 1, shares}, seed);
        gated += play(machine, flow, {"dmdas", rule, 1, shares}, seed);
      }
      const double of_known = known.ms / blind.ms, of_gated = gated.ms / blind.ms, ratio = gated.ms / known.ms;
      std::printf("%-14s %u, %u   %-30s %10.1f %12.3f %8.3f %8llu\n", machine.name.c_str(),
                  machine.placement.computation, machine.placement.communication, flow.name.c_str(), blind.ms / seeds,
                  of_known, of_gated, static_cast<unsigned long long>(gated.put_aside / seeds));
      if (!rule.limits(machine.workers())) {
        EXPECT_EQ(ratio, 1);
      }
      log_known += std::log(of_known);
      log_gated += std::log(of_gated);
      worst = std::max(worst, ratio);
      best = std::min(best, ratio);
      ++count;
    }
  }
  std::printf(
      "%u cases: %.3f of the time of dmdas by the model, %.3f with the limit, too; limited / not limited: %.3f in the "
      "geometric mean, %.3f at best, %.3f at worst\n",
      count, std::exp(log_known / count), std::exp(log_gated / count), std::exp((log_gated - log_known) / count), best,
      worst);
  EXPECT_LT(log_gated / count, std::log(0.98));
  EXPECT_LT(log_gated, log_known);
  EXPECT_LT(best, 0.8);
  EXPECT_LT(worst, 1.1);
}

/// Random tasks, shared and placed, memory-bound and not, of several priorities, on vectors of all ranks whose messages
/// all count as long. The thread of the program works or not, and submits between two waits. Returns how often a task
/// waited.
std::uint64_t play_random(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t count) { return random() % count; };
  JobSetup setup{.ranks = static_cast<std::uint32_t>(1 + below(3)),
                 .caller = below(2) == 0,
                 .sched = std::array{"dm", "dmda", "dmdar", "dmdas", "plan"}[below(5)]};
  setup.network = {.ranks_per_host = 1,
                   .latency_min_ns = 1'000,
                   .latency_max_ns = 100'000,
                   .bytes_per_ns = 0.2 + 0.1 * static_cast<double>(below(10))};
  const unsigned cores = static_cast<unsigned>(2 + below(4)), cards = static_cast<unsigned>(1 + below(2));
  setup.adjust = [&](std::uint32_t, TestWorldOptions& world) {
    world.workers = cores;
    world.devices = cards;
  };
  setup.core.poll_for_ns = below(2) == 0 ? 0 : 50'000;
  setup.core.emulation = [](const runtime::EmulatedTask& task) -> std::optional<runtime::EmulatedWork> {
    return static_cast<std::int64_t>(task.codelet.size() * (task.device == DeviceKind::cpu ? 40'000 : 15'000));
  };
  const unsigned most = static_cast<unsigned>(1 + below(cores - 1));
  setup.core.memory_gate = {
      .most = most, .most_beside_messages = static_cast<unsigned>(1 + below(most)), .network_bytes_per_ns = 0.001};
  if (below(2) == 0)
    setup.core.memory_shares = {.core_bytes_per_ns = 1,
                                .stream_bytes_per_ns = 1,
                                .of_cores = {1, 1, 0.7},
                                .beside_messages = {1, 0.8, 0.5},
                                .of_streams = {1, 0.5, 0.2}};
  constexpr std::size_t kVectors = 24;
  const std::size_t waits = 2 + below(3), tasks = 60 + below(150);
  std::vector<std::uint32_t> owners;
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < kVectors; ++i) {
    owners.push_back(static_cast<std::uint32_t>(below(setup.ranks)));
    sizes.push_back(std::size_t{20} << below(10));
  }
  const std::uint64_t flow = random();
  std::uint64_t ran = 0, aside = 0;
  const DeterministicJob::Outcome outcome = DeterministicJob(seed).run(setup, [&](Runtime& rt, DeterministicJob& job) {
    const auto body = [](std::span<const double>, std::span<double>) {};
    const auto moves = on_all("moves", body).memory_bound(),
               computes = on_all("computes for longer", body).memory_bound(false);
    const auto one_core = on_all("one core", body).memory_bound().can_run([](const WorkerDescription& worker) {
      return worker.worker != 0;
    });
    const Codelet shared = Codelet("moves, too", body).memory_bound();
    const Codelet begin("begin", [](std::span<double>) {});
    std::vector<Data<Vector<double>>> vectors;
    for (std::size_t i = 0; i < kVectors; ++i)
      vectors.push_back(rt.vector<double>("vector", sizes[i], {.owner = owners[i]}));
    for (const auto& vector : vectors) rt.submit(begin, write(vector));
    std::mt19937_64 draw(flow);
    for (std::size_t wait = 0; wait < waits; ++wait) {
      for (std::size_t i = 0; i < tasks; ++i) {
        const std::size_t from = draw() % kVectors, to = (from + 1 + draw() % (kVectors - 1)) % kVectors,
                          kind = draw() % 8;
        const TaskOptions options{.priority = static_cast<int>(draw() % 3)};
        if (kind < 4) rt.submit(options, moves, read(vectors[from]), read_write(vectors[to]));
        else if (kind < 6) rt.submit(options, computes, read(vectors[from]), read_write(vectors[to]));
        else if (kind == 6) rt.submit(options, one_core, read(vectors[from]), read_write(vectors[to]));
        else rt.submit(options, shared, read(vectors[from]), read_write(vectors[to]));
        job.maybe_yield();
      }
      rt.wait();
      EXPECT_TRUE(rt.core().executor().check_invariants()) << "GATE_RANDOM_SEED=" << seed;
    }
    for (const runtime::WorkerReport& worker : rt.statistics().workers) {
      ran += worker.tasks;
      aside += worker.put_aside;
    }
  });
  EXPECT_FALSE(outcome.stuck) << outcome.why << "; GATE_RANDOM_SEED=" << seed;
  for (const Ending& ending : outcome.endings) EXPECT_EQ(ending.error, "") << "GATE_RANDOM_SEED=" << seed;
  EXPECT_EQ(ran, kVectors + waits * tasks) << "GATE_RANDOM_SEED=" << seed;
  return aside;
}

/// GATE_RANDOM_SEED=n plays the flow of that seed alone, GATE_RANDOM_COUNT=n so many.
TEST(DistMemoryGate, RandomFlowsOfPlacedTasksEnd) {
  if (const unsigned only = static_cast<unsigned>(test::number_of("GATE_RANDOM_SEED", 0)); only != 0) {
    play_random(only);
    return;
  }
  std::uint64_t aside = 0;
  const unsigned count = static_cast<unsigned>(test::number_of("GATE_RANDOM_COUNT", base::under_sanitizer ? 12 : 60));
  for (std::uint64_t seed = 1; seed <= count && !testing::Test::HasFailure(); ++seed) aside += play_random(seed);
  EXPECT_GT(aside, count);
  std::printf("%u flows, tasks waited %llu times\n", count, static_cast<unsigned long long>(aside));
}

}  // namespace
}  // namespace tandem::dist_test::memory_gate_test
