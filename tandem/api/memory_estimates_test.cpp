// tandem/api/memory_estimates_test.cpp: compares policies with and without knowledge of shared memory, on modelled
// machines with devices.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/api/memory_contention.hpp"
#include "tandem/api/test_support.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/model/contention/platforms.hpp"
#include "tandem/model/contention/threshold_model.hpp"
#include "tandem/runtime/device/modelled_memory.hpp"
#include "tandem/runtime/runtime_core.hpp"

namespace tandem::memory_estimates_test {
namespace {

using model::contention::Placement;
using model::contention::ThresholdModel;

/// A socket of a machine of the thesis, with devices.
struct ModelledMachine {
  std::string name;
  Placement placement;
  unsigned cards;
  const model::contention::Platform& platform() const { return *model::contention::find_platform(name); }
  unsigned cores() const { return platform().cores_per_socket - 1; }
};

// --- kernels

constexpr std::size_t kTileRows = 4;
constexpr std::size_t kTileBytes = kTileRows * kTileRows * sizeof(double);
constexpr double kMovedBytes = 32e6;  ///< bytes for which a tile of the test stands
constexpr double kScale = kMovedBytes / kTileBytes;
constexpr double kLinkBytesPerNs = 12;

struct Kernel {
  std::string_view name;
  double tiles;    ///< tiles that it moves
  double core_ms;  ///< time alone, beside what it moves
  double card_ms;
};
constexpr Kernel kKernels[] = {{"update", 3, 0, 3}, {"scale", 2, 0, 4}, {"product", 3, 60, 4}, {"factor", 2, 25, 12}};

std::optional<runtime::EmulatedWork> work_of(std::string_view codelet, DeviceKind kind, double core_mb_s) {
  const auto* const kernel = std::ranges::find(kKernels, codelet, &Kernel::name);
  if (kernel == std::end(kKernels)) return runtime::EmulatedWork(1'000);
  if (kind != DeviceKind::cpu) return runtime::EmulatedWork(static_cast<std::int64_t>(kernel->card_ms * 1e6));
  const double bytes = kernel->tiles * kMovedBytes, moving_ms = bytes / core_mb_s * 1e-3;
  return runtime::EmulatedWork(static_cast<std::int64_t>(std::max(kernel->core_ms, moving_ms) * 1e6), bytes);
}

using Tile = Data<Matrix<double>>;
using In = MatrixView<const double>;
using Out = MatrixView<double>;

template <class Body>
auto both(const char* name, Body body) {
  return Codelet(name, body).also(DeviceKind::user, body);
}
const auto update = both("update", [](In, Out) {});
const auto scale = both("scale", [](Out) {});
const auto product = both("product", [](In, Out) {});
const auto factor = both("factor", [](Out) {});

std::vector<Tile> tiles(Runtime& rt, unsigned count) {
  static const Codelet fill("fill", [](Out) {});
  std::vector<Tile> made;
  for (unsigned i = 0; i < count; ++i) {
    made.push_back(rt.matrix<double>("tile", kTileRows, kTileRows));
    rt.submit(fill, write(made.back()));
  }
  return made;
}

// --- flows

struct Flow {
  std::string name;
  std::function<void(Runtime&, std::vector<Tile>&)> submit;
};

/// A flow of steps that move data, then steps that compute, mixed with some of the other kind.
void phases(Runtime& rt, std::vector<Tile>& a, unsigned steps, unsigned moving, unsigned computing) {
  for (unsigned step = 0; step < steps; ++step)
    for (unsigned i = 0; i < a.size() / 2; ++i) {
      Tile& from = a[i];
      Tile& to = a[a.size() / 2 + (i * 7 + step) % (a.size() / 2)];
      const bool moves = (step / 4) % 2 == 0;
      const unsigned share = moves ? moving : computing;
      if (i % 8 < share) rt.submit(update, read(from), read_write(to));
      else rt.submit(product, read(from), read_write(to));
    }
}

/// A factorisation: one column of tiles after the other, each followed by an update of the rest.
void factorisation(Runtime& rt, std::vector<Tile>& a, unsigned n, bool moves) {
  const auto tile = [&](unsigned i, unsigned j) -> Tile& { return a[(i * n + j) % a.size()]; };
  for (unsigned k = 0; k < n; ++k) {
    const auto urgency = [&](unsigned i, unsigned j) {
      return TaskOptions{.priority = static_cast<int>(3 * n - k - i - j)};
    };
    rt.submit(urgency(k, k), factor, read_write(tile(k, k)));
    for (unsigned i = k + 1; i < n; ++i) rt.submit(urgency(i, k), product, read(tile(k, k)), read_write(tile(i, k)));
    for (unsigned i = k + 1; i < n; ++i)
      for (unsigned j = k + 1; j <= i; ++j)
        if (moves || (i + j) % 2 == 0) rt.submit(urgency(i, j), update, read(tile(i, k)), read_write(tile(i, j)));
        else rt.submit(urgency(i, j), product, read(tile(i, k)), read_write(tile(i, j)));
  }
}

const std::vector<Flow>& flows() {
  static const std::vector<Flow> known{
      {"moves, then computes", [](Runtime& rt, std::vector<Tile>& a) { phases(rt, a, 24, 8, 0); }},
      {"mostly one, then the other", [](Runtime& rt, std::vector<Tile>& a) { phases(rt, a, 24, 7, 1); }},
      {"half of each", [](Runtime& rt, std::vector<Tile>& a) { phases(rt, a, 24, 4, 4); }},
      {"a quarter moves", [](Runtime& rt, std::vector<Tile>& a) { phases(rt, a, 24, 2, 2); }},
      {"moves", [](Runtime& rt, std::vector<Tile>& a) { phases(rt, a, 24, 8, 8); }},
      {"computes", [](Runtime& rt, std::vector<Tile>& a) { phases(rt, a, 24, 0, 0); }},
      {"factorisation", [](Runtime& rt, std::vector<Tile>& a) { factorisation(rt, a, 14, false); }},
      {"factorisation that moves", [](Runtime& rt, std::vector<Tile>& a) { factorisation(rt, a, 14, true); }},
  };
  return known;
}

// --- runs

struct Run {
  const ModelledMachine& machine;
  std::string sched;
  bool shares = false;  ///< the policy knows how kernels and copies share memory
  bool gate = false;    ///< the policy limits memory-bound tasks
};

/// Makespan in ms of the machine when the flow runs the second time, with known durations.
double makespan_ms(const Run& run, const Flow& flow, std::uint64_t seed) {
  const ThresholdModel model(run.machine.platform().machine);
  const model::contention::Load all{.cores = run.machine.cores(), .placement = run.machine.placement};
  const double core_mb_s = model.predict({.cores = 1, .placement = all.placement}).computation_alone_mb_s;
  auto own_loop = std::make_unique<base::EventLoop>(seed);
  base::EventLoop& loop = *own_loop;
  runtime::ModelledMemory memory(model, all.placement, loop);
  runtime::CoreOptions options;
  options.emulation = [&](const runtime::EmulatedTask& task) { return work_of(task.codelet, task.device, core_mb_s); };
  options.modelled_memory = &memory;
  options.tasks_per_step = 1;
  if (run.shares) {
    options.memory_shares = memory_shares(model, all);
    options.memory_shares.core_bytes_per_ns /= kScale;
    options.memory_shares.stream_bytes_per_ns /= kScale;
  }
  if (run.gate) options.memory_gate = memory_gate_rule(model, all);
  auto resources = test::test_resources();
  runtime::World world =
      make_test_world({.seed = seed,
                       .workers = run.machine.cores(),
                       .sched = run.sched,
                       .devices = run.machine.cards,
                       .link = runtime::MachineLink{.bytes_per_ns = kLinkBytesPerNs / kScale, .latency_ns = 10'000},
                       .memory = &memory,
                       .loop = &loop},
                      *resources);
  world.driver = std::move(own_loop);
  Runtime rt(std::move(resources), std::move(world), options);
  auto a = tiles(rt, 64);
  flow.submit(rt, a);
  rt.wait();
  const std::int64_t began_ns = loop.now_ns();
  flow.submit(rt, a);
  rt.wait();
  EXPECT_TRUE(rt.core().executor().check_invariants());
  return static_cast<double>(loop.now_ns() - began_ns) / 1e6;
}

// --- the limit

constexpr const char* kPlacing[] = {"plan", "heteroprio", "darts", "dm", "dmda", "dmdar", "dmdas"};

/// Four cores, two of which saturate the bus, and a device. Kernels take 1 ms alone.
std::unique_ptr<Runtime> runtime_with_limit(const std::string& sched) {
  static const runtime::Emulation one_ms = [](const runtime::EmulatedTask&) {
    return runtime::EmulatedWork(1'000'000);
  };
  runtime::CoreOptions options;
  options.emulation = one_ms;
  options.tasks_per_step = 1;
  options.timeline = true;
  options.memory_gate = {.most = 2, .most_beside_messages = 1, .network_bytes_per_ns = 1};
  options.memory_shares = {.core_bytes_per_ns = 1,
                           .stream_bytes_per_ns = 1,
                           .of_cores = {1, 1, 1, 0.7, 0.5},
                           .beside_messages = {1, 1, 0.8, 0.5, 0.4},
                           .of_streams = {1, 1, 0.5, 0.2, 0.2}};
  return test::loop_runtime(
      {.workers = 4, .sched = sched, .devices = 1, .link = runtime::MachineLink{.bytes_per_ns = 1, .latency_ns = 10}},
      options);
}

/// The most tasks of the codelet that ran at once on cores, or on other workers.
unsigned most_at_once(const Runtime& rt, std::string_view codelet, bool on_cores) {
  const std::vector<TimelineEvent> events = rt.timeline();
  const auto counts = [&](const TimelineEvent& event) {
    return *event.codelet == codelet && (event.worker < 4) == on_cores;
  };
  unsigned most = 0;
  for (const TimelineEvent& event : events) {
    unsigned beside = 0;
    for (const TimelineEvent& other : events)
      if (counts(event) && counts(other) && other.start_ns <= event.start_ns && event.start_ns < other.end_ns) ++beside;
    most = std::max(most, beside);
  }
  return most;
}

void expect_at_most_on_cores(const std::string& sched, unsigned most, bool message) {
  const auto rt = runtime_with_limit(sched);
  const auto moves = both("moves", [](Out) {}).memory_bound();
  const auto computes = both("computes", [](Out) {}).memory_bound(false);
  auto a = tiles(*rt, 60);
  rt->wait();
  runtime::WatchedMessage watched;
  if (message) rt->core().executor().messages().begin_data(watched, SIZE_MAX, 0);
  for (unsigned i = 0; i < 60; ++i)
    i % 2 == 0 ? rt->submit(moves, read_write(a[i])) : rt->submit(computes, read_write(a[i]));
  rt->wait();
  rt->core().executor().messages().end_data(watched);
  EXPECT_LE(most_at_once(*rt, "moves", true), most) << sched;
  EXPECT_GE(most_at_once(*rt, "computes", true), 4 - most) << sched << ": others are free";
  EXPECT_GE(most_at_once(*rt, "moves", false) + most_at_once(*rt, "computes", false), 1U)
      << sched << ": so is the card";
  EXPECT_TRUE(rt->core().executor().check_invariants());
}

TEST(MemoryLimit, HoldsForCoresBesideDevices) {
  for (const char* sched : kPlacing) expect_at_most_on_cores(sched, 2, false);
}

TEST(MemoryLimit, IsLowerBesideUrgentMessages) {
  for (const char* sched : kPlacing) expect_at_most_on_cores(sched, 1, true);
}

TEST(MemoryLimit, RisesWhenTheMessageEnds) {
  const auto rt = runtime_with_limit("plan");
  const auto moves = Codelet("moves", [](Out) {}).memory_bound();
  auto a = tiles(*rt, 40);
  rt->wait();
  runtime::WatchedMessage watched;
  rt->core().executor().messages().begin_data(watched, SIZE_MAX, 0);
  base::EventLoop& loop = *rt->resources().loop;
  loop.at(loop.now_ns() + 10'500'000, [&] { rt->core().executor().messages().end_data(watched); });
  const std::int64_t began_ns = loop.now_ns();
  for (unsigned i = 0; i < 40; ++i) rt->submit(moves, read_write(a[i]));
  rt->wait();
  EXPECT_EQ(most_at_once(*rt, "moves", true), 2U);
  EXPECT_NEAR(static_cast<double>(loop.now_ns() - began_ns) * 1e-6, 10.5 + 29.5 / 2, 1.2)
      << "one after the other, then two at once";
}

// --- flows

struct Result {
  double mean, worst, best;
};

const std::vector<ModelledMachine>& machines() {
  static const std::vector<ModelledMachine> known{{"henri", {1, 1}, 1},
                                                  {"henrisubnuma", {0, 0}, 1},
                                                  {"henrisubnuma", {2, 2}, 2},
                                                  {"billy", {1, 1}, 2},
                                                  {"henri", {0, 0}, 1}};
  return known;
}

/// Mean makespan over as many orders of steps as CONTENTION_SEEDS says.
double mean_makespan_ms(const Run& run, const Flow& flow) {
  const char* const given = std::getenv("CONTENTION_SEEDS");
  const std::uint64_t seeds = given != nullptr ? std::strtoull(given, nullptr, 10) : 6;
  double ms = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) ms += makespan_ms(run, flow, seed) / static_cast<double>(seeds);
  return ms;
}

/// Makespan with a policy that does not know about shared memory, computed once for all tests.
double blind_makespan_ms(const ModelledMachine& machine, const std::string& sched, const Flow& flow) {
  static std::map<std::tuple<const ModelledMachine*, std::string, std::string>, double> known;
  const auto [at, is_new] = known.try_emplace({&machine, sched, flow.name}, 0);
  if (is_new) at->second = mean_makespan_ms({machine, sched}, flow);
  return at->second;
}

/// Makespans of all flows with the policy, divided by those without its knowledge.
Result compare(const std::string& sched, bool gate) {
  double log_sum = 0;
  unsigned count = 0;
  Result result{0, 0, 1e9};
  for (const ModelledMachine& machine : machines())
    for (const Flow& flow : flows()) {
      const double blind_ms = blind_makespan_ms(machine, sched, flow),
                   aware_ms = mean_makespan_ms({machine, sched, true, gate}, flow);
      const double ratio = aware_ms / blind_ms;
      std::printf("%-13s %u, %u  %u cards  %-6s %-27s %9.1f %9.1f %7.3f\n", machine.name.c_str(),
                  machine.placement.computation, machine.placement.communication, machine.cards, sched.c_str(),
                  flow.name.c_str(), blind_ms, aware_ms, ratio);
      log_sum += std::log(ratio);
      ++count;
      result.worst = std::max(result.worst, ratio);
      result.best = std::min(result.best, ratio);
    }
  result.mean = std::exp(log_sum / count);
  std::printf("%s%s, %u cases: %.3f of the time in the geometric mean, %.3f at best, %.3f at worst\n", sched.c_str(),
              gate ? " with the limit" : "", count, result.mean, result.best, result.worst);
  return result;
}

TEST(MemoryEstimates, PlanEndsEarlier) {
  const Result aware = compare("plan", false);
  EXPECT_LT(aware.mean, 0.985);
  EXPECT_LT(aware.best, 0.92);
  EXPECT_LT(aware.worst, 1.035);
}

TEST(MemoryEstimates, PlanEndsEarlierWithALimitOfMemoryBoundTasks) {
  const Result gated = compare("plan", true);
  EXPECT_LT(gated.mean, 0.995);
  EXPECT_LT(gated.best, 0.92);
  EXPECT_LT(gated.worst, 1.035);
}

TEST(MemoryEstimates, DmdasEndsNoLater) {
  const Result aware = compare("dmdas", false);
  EXPECT_LT(aware.mean, 1);
  EXPECT_LT(aware.best, 0.98);
  EXPECT_LT(aware.worst, 1.035);
}

TEST(MemoryEstimates, DmdasEndsNoLaterWithALimitOfMemoryBoundTasks) {
  const Result gated = compare("dmdas", true);
  EXPECT_LT(gated.mean, 1.005);
  EXPECT_LT(gated.worst, 1.05);
}

/// Many of these flows update the same data repeatedly.
TEST(MemoryEstimates, PlanEndsEarlierThanDmdasWithoutThem) {
  double log_sum = 0, worst = 0;
  for (const ModelledMachine& machine : machines())
    for (const Flow& flow : flows()) {
      const double ratio = blind_makespan_ms(machine, "plan", flow) / blind_makespan_ms(machine, "dmdas", flow);
      log_sum += std::log(ratio);
      worst = std::max(worst, ratio);
      if (flow.name == "computes") {
        EXPECT_LT(ratio, 1.05) << machine.name;
      }
    }
  const double mean = std::exp(log_sum / static_cast<double>(machines().size() * flows().size()));
  std::printf("plan takes %.3f of dmdas in the geometric mean, %.3f at worst\n", mean, worst);
  EXPECT_LT(mean, 0.97);
  EXPECT_LT(worst, 1.25);
}

}  // namespace
}  // namespace tandem::memory_estimates_test
