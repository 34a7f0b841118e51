// tandem/api/scheduling_grid_test.cpp: compares all policies for mixed machines on modelled machines, flows and
// budgets.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/model/tasks/random_durations.hpp"

namespace tandem::scheduling_grid_test {
namespace {

using test::loop_runtime;

// --- machines

constexpr std::size_t kTileRows = 4;
constexpr std::size_t kTileBytes = kTileRows * kTileRows * sizeof(double);
constexpr auto kOtherCard = static_cast<DeviceKind>(static_cast<int>(DeviceKind::user) + 1);

/// A machine with cores, and devices that run kernels faster.
struct ModelledMachine {
  std::string name;
  unsigned cores;             ///< 0: only devices run the flow
  std::vector<double> cards;  ///< strength of each device: 1 means the speedup of the kernel
  double copy_us;             ///< time of a copy of a tile
};

const std::vector<ModelledMachine>& machines() {
  static const std::vector<ModelledMachine> known{
      {"8 cores, 2 cards", 8, {1, 1}, 614},          {"4 cores, 1 card", 4, {1}, 614},
      {"16 cores, 4 cards", 16, {1, 1, 1, 1}, 1200}, {"8 cores, weak card", 8, {0.25}, 614},
      {"6 cores, two kinds of cards", 6, {1, 0.4}, 614}, {"2 cores, 2 cards, slow links", 2, {1, 1}, 2500},
  };
  return known;
}

// --- kernels and flows

struct Kernel {
  std::string_view name;
  double core_ms;
  double speedup;
};
/// Kernels on tiles of 960 x 960 on cores of 20 GFlop/s, and four without such a meaning.
constexpr std::array<Kernel, 13> kKernels{{{"potrf", 14.7, 2},
                                           {"trsm", 44.2, 11},
                                           {"syrk", 44.2, 26},
                                           {"gemm", 88.5, 25},
                                           {"getrf", 29.5, 3},
                                           {"geqrt", 58, 2},
                                           {"unmqr", 88, 12},
                                           {"tsqrt", 88, 4},
                                           {"tsmqr", 147, 18},
                                           {"a", 50, 30},
                                           {"b", 50, 8},
                                           {"c", 30, 2},
                                           {"d", 20, 0.5}}};

std::optional<std::int64_t> duration_of(const ModelledMachine& machine, std::string_view codelet, DeviceKind kind) {
  const auto kernel = std::ranges::find(kKernels, codelet, &Kernel::name);
  if (kernel == kKernels.end()) return {};
  double ms = kernel->core_ms;
  if (kind != DeviceKind::cpu)
    ms /= kernel->speedup * (kind == kOtherCard ? machine.cards.back() : machine.cards.front());
  return static_cast<std::int64_t>(ms * 1e6);
}

/// Estimates that earlier runs have measured.
class Known final : public runtime::Estimates {
 public:
  Known(const ModelledMachine& machine, double noise) : machine_(machine), noise_(noise) {}
  runtime::Estimate expected_ns(std::string_view codelet, model::Footprint, DeviceKind kind) const override {
    const auto mean_ns = static_cast<double>(duration_of(machine_, codelet, kind).value_or(1'000));
    return {mean_ns, kind == DeviceKind::cpu ? noise_ * mean_ns : 0, true};
  }

 private:
  const ModelledMachine& machine_;
  const double noise_;
};

using Tile = Data<Matrix<double>>;

using In = MatrixView<const double>;
using Out = MatrixView<double>;

enum class Where { anywhere, rather_on_cards, on_cards_alone };

/// The codelet of a name, made once for each answer.
template <class Body>
const auto& codelet(std::string_view name, Where where, Body body) {
  const auto make = [&] {
    const auto anywhere = Codelet(std::string(name), body).also(DeviceKind::user, body).also(kOtherCard, body);
    if (where == Where::rather_on_cards) return anywhere.prefer_devices();
    return where == Where::anywhere
               ? anywhere
               : anywhere.can_run([](const WorkerDescription& worker) { return worker.device != DeviceKind::cpu; });
  };
  static std::map<std::pair<std::string_view, Where>, decltype(make())> made;
  return made.try_emplace({name, where}, make()).first->second;
}

/// Tasks with modelled kernels, submitted together when all are known, so that they can have priorities.
class Flow {
 public:
  explicit Flow(Runtime& rt, Where where) : rt_(rt), where_(where) {}
  /// Makes tiles with a value in main memory.
  std::vector<Tile> tiles(unsigned count) {
    static const Codelet fill("fill", [](Out) {});
    std::vector<Tile> made;
    for (unsigned i = 0; i < count; ++i) {
      made.push_back(rt_.matrix<double>("tile", kTileRows, kTileRows));
      rt_.submit(fill, write(made.back()));
    }
    return made;
  }
  std::vector<std::vector<Tile>> tiles(unsigned rows, unsigned columns) {
    std::vector<std::vector<Tile>> made;
    for (unsigned i = 0; i < rows; ++i) made.push_back(tiles(columns));
    return made;
  }
  /// Adds a task that reads `in` and changes `out`.
  void task(std::string_view kernel, std::vector<Tile> in, std::vector<Tile> out) {
    tasks_.push_back({kernel, std::move(in), std::move(out)});
  }
  /// Submits the tasks. Priorities are bottom levels: the time from a task's start to the end of the flow on as many
  /// strong devices as could be used.
  void submit(bool with_priorities) {
    if (with_priorities) rank();
    for (Planned& task : tasks_) {
      const TaskOptions options{.priority = static_cast<int>(task.level_ms * 10)};
      auto& [kernel, in, out, level] = task;
      if (out.size() == 2 && in.empty())
        rt_.submit(options, codelet(kernel, where_, [](Out, Out) {}), read_write(out[0]), read_write(out[1]));
      else if (out.size() == 2) rt_.submit(options, codelet(kernel, where_, [](In, Out, Out) {}), read(in[0]),
                                           read_write(out[0]), read_write(out[1]));
      else if (in.empty()) rt_.submit(options, codelet(kernel, where_, [](Out) {}), read_write(out[0]));
      else if (in.size() == 1) rt_.submit(options, codelet(kernel, where_, [](In, Out) {}), read(in[0]),
                                          read_write(out[0]));
      else rt_.submit(options, codelet(kernel, where_, [](In, In, Out) {}), read(in[0]), read(in[1]),
                      read_write(out[0]));
    }
  }

 private:
  struct Planned {
    std::string_view kernel;
    std::vector<Tile> in, out;
    double level_ms = 0;
  };

  void rank() {
    struct Later {
      double readers_ms = 0;  ///< largest level of the tasks that read it before `writer`
      double writer_ms = 0;
    };
    std::map<runtime::Handle*, Later> later;  // by tile
    for (auto task = tasks_.rbegin(); task != tasks_.rend(); ++task) {
      double behind_ms = 0;
      for (const Tile& tile : task->in) behind_ms = std::max(behind_ms, later[tile.handle()].writer_ms);
      for (const Tile& tile : task->out)
        behind_ms = std::max({behind_ms, later[tile.handle()].readers_ms, later[tile.handle()].writer_ms});
      const auto kernel = std::ranges::find(kKernels, task->kernel, &Kernel::name);
      task->level_ms = behind_ms + kernel->core_ms / std::max(1.0, kernel->speedup);
      for (const Tile& tile : task->in)
        later[tile.handle()].readers_ms = std::max(later[tile.handle()].readers_ms, task->level_ms);
      for (const Tile& tile : task->out) later[tile.handle()] = {0, task->level_ms};
    }
  }

  Runtime& rt_;
  Where where_;
  std::vector<Planned> tasks_;
};

struct NamedFlow {
  std::string name;
  bool with_priorities;
  std::function<void(Flow&)> make;
  Where where = Where::anywhere;
};

void cholesky(Flow& flow, unsigned n) {
  auto a = flow.tiles(n, n);
  for (unsigned k = 0; k < n; ++k) {
    flow.task("potrf", {}, {a[k][k]});
    for (unsigned i = k + 1; i < n; ++i) flow.task("trsm", {a[k][k]}, {a[i][k]});
    for (unsigned i = k + 1; i < n; ++i) {
      flow.task("syrk", {a[i][k]}, {a[i][i]});
      for (unsigned j = k + 1; j < i; ++j) flow.task("gemm", {a[i][k], a[j][k]}, {a[i][j]});
    }
  }
}

void lu(Flow& flow, unsigned n) {
  auto a = flow.tiles(n, n);
  for (unsigned k = 0; k < n; ++k) {
    flow.task("getrf", {}, {a[k][k]});
    for (unsigned i = k + 1; i < n; ++i) flow.task("trsm", {a[k][k]}, {a[i][k]});
    for (unsigned j = k + 1; j < n; ++j) flow.task("trsm", {a[k][k]}, {a[k][j]});
    for (unsigned i = k + 1; i < n; ++i)
      for (unsigned j = k + 1; j < n; ++j) flow.task("gemm", {a[i][k], a[k][j]}, {a[i][j]});
  }
}

void qr(Flow& flow, unsigned n) {
  auto a = flow.tiles(n, n);
  for (unsigned k = 0; k < n; ++k) {
    flow.task("geqrt", {}, {a[k][k]});
    for (unsigned j = k + 1; j < n; ++j) flow.task("unmqr", {a[k][k]}, {a[k][j]});
    for (unsigned i = k + 1; i < n; ++i) {
      flow.task("tsqrt", {}, {a[k][k], a[i][k]});
      for (unsigned j = k + 1; j < n; ++j) flow.task("tsmqr", {a[i][k]}, {a[k][j], a[i][j]});
    }
  }
}

void gemm(Flow& flow, unsigned n) {
  auto a = flow.tiles(n, n), b = flow.tiles(n, n), c = flow.tiles(n, n);
  for (unsigned i = 0; i < n; ++i)
    for (unsigned j = 0; j < n; ++j)
      for (unsigned k = 0; k < n; ++k) flow.task("gemm", {a[i][k], b[k][j]}, {c[i][j]});
}

/// A flow of independent products of two tiles each: in their order, each tile is loaded often if memory is small.
/// `seed` not 0: a random order.
void outer(Flow& flow, unsigned n, unsigned seed = 0) {
  auto a = flow.tiles(n), b = flow.tiles(n), c = flow.tiles(n * n);
  std::vector<unsigned> order(n * n);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 random(seed);
  for (unsigned left = n * n; seed != 0 && left > 1; --left) std::swap(order[left - 1], order[random() % left]);
  for (const unsigned product : order) flow.task("a", {a[product / n], b[product % n]}, {c[product]});
}

std::string_view any_kernel(std::mt19937_64& random) { return kKernels[9 + random() % 4].name; }

void independent(Flow& flow, unsigned count) {
  std::mt19937_64 random(7);
  for (auto& tile : flow.tiles(count)) flow.task(any_kernel(random), {}, {tile});
}

void layers(Flow& flow, unsigned width, unsigned depth) {
  auto data = flow.tiles(depth + 1, width);
  std::mt19937_64 random(11);
  for (unsigned layer = 1; layer <= depth; ++layer)
    for (unsigned i = 0; i < width; ++i)
      flow.task(any_kernel(random), {data[layer - 1][random() % width], data[layer - 1][(i + random() % 3) % width]},
                {data[layer][i]});
}

// These flows use the same data repeatedly: the last task of a worker shows where the next one needs no copy.

/// A flow that updates tiles in so many steps, each time with another tile that all of them read.
void chains(Flow& flow, unsigned count, unsigned steps, std::string_view kernel) {
  auto read = flow.tiles(count), updated = flow.tiles(count);
  for (unsigned step = 0; step < steps; ++step)
    for (unsigned i = 0; i < count; ++i) flow.task(kernel, {read[i]}, {updated[(i * 7 + step) % count]});
}

/// A flow like `chains` with two kinds of tasks, alternating every four steps.
void phases(Flow& flow, unsigned count, unsigned steps, std::string_view first, std::string_view second) {
  auto read = flow.tiles(count), updated = flow.tiles(count);
  for (unsigned step = 0; step < steps; ++step)
    for (unsigned i = 0; i < count; ++i)
      flow.task(step / 4 % 2 == 0 ? first : second, {read[(i * 5 + step) % count]}, {updated[i]});
}

/// A flow that computes each tile from its neighbours of the step before.
void stencil(Flow& flow, unsigned count, unsigned steps, std::string_view kernel) {
  auto now = flow.tiles(count), next = flow.tiles(count);
  for (unsigned step = 0; step < steps; ++step, std::swap(now, next))
    for (unsigned i = 0; i < count; ++i) flow.task(kernel, {now[i], now[(i + 1) % count]}, {next[i]});
}

/// A flow in which each of some tiles meets all others.
void sweep(Flow& flow, unsigned count, unsigned steps, std::string_view kernel) {
  auto passing = flow.tiles(steps), updated = flow.tiles(count);
  for (unsigned step = 0; step < steps; ++step)
    for (unsigned i = 0; i < count; ++i) flow.task(kernel, {passing[step]}, {updated[i]});
}

const std::vector<NamedFlow>& flows() {
  static const std::vector<NamedFlow> known{
      {"cholesky", true, [](Flow& flow) { cholesky(flow, 16); }},
      {"cholesky, no priorities", false, [](Flow& flow) { cholesky(flow, 16); }},
      {"lu", true, [](Flow& flow) { lu(flow, 12); }},
      {"lu, no priorities", false, [](Flow& flow) { lu(flow, 12); }},
      {"qr", true, [](Flow& flow) { qr(flow, 10); }},
      {"qr, no priorities", false, [](Flow& flow) { qr(flow, 10); }},
      {"gemm", true, [](Flow& flow) { gemm(flow, 10); }},
      {"outer products", false, [](Flow& flow) { outer(flow, 24); }},
      {"independent", false, [](Flow& flow) { independent(flow, 500); }},
      {"layers", true, [](Flow& flow) { layers(flow, 40, 15); }},
      {"layers, no priorities", false, [](Flow& flow) { layers(flow, 40, 15); }},
  };
  return known;
}

/// Random variation of the durations of kernels on cores.
struct Noise {
  double deviation = 0;    ///< relative; durations are log-normal, with the same mean as without noise
  std::uint64_t seed = 1;
};

/// Makespan in ms of the machine.
double makespan_ms(const ModelledMachine& machine, const NamedFlow& flow, unsigned budget_tiles, bool is_known,
                   const std::string& sched, Noise noise) {
  runtime::CoreOptions options;
  model::RandomDurations random(noise.seed);
  options.emulation = [&](const runtime::EmulatedTask& task) {
    std::optional<std::int64_t> ns = duration_of(machine, task.codelet, task.device);
    if (ns && task.device == DeviceKind::cpu && noise.deviation > 0)
      *ns = static_cast<std::int64_t>(
          random.around(static_cast<double>(*ns) * std::exp(-noise.deviation * noise.deviation / 2), noise.deviation));
    return ns;
  };
  options.tasks_per_step = 1;
  const runtime::MachineLink link{.bytes_per_ns = kTileBytes / (machine.copy_us * 1e3), .latency_ns = 10'000};
  auto resources = test::test_resources();
  runtime::World world = make_test_world({.workers = std::max(1U, machine.cores),
                                          .sched = sched,
                                          .devices = static_cast<unsigned>(machine.cards.size()),
                                          .link = link,
                                          .device_bytes = budget_tiles * kTileBytes},
                                         *resources);
  for (std::size_t card = 0; card < machine.cards.size(); ++card)
    if (machine.cards[card] != machine.cards[0])
      world.machine.workers[std::max(1U, machine.cores) + card].kind = kOtherCard;
  if (is_known) world.estimates = std::make_unique<Known>(machine, noise.deviation);
  base::EventLoop& loop = *resources->loop;
  Runtime rt(std::move(resources), std::move(world), options);
  Flow submits(rt, machine.cores == 0 ? Where::on_cards_alone : flow.where);
  flow.make(submits);
  rt.wait();
  const std::int64_t began_ns = loop.now_ns();
  submits.submit(flow.with_priorities);
  rt.wait();
  return static_cast<double>(loop.now_ns() - began_ns) / 1e6;
}

const std::vector<std::string> kOthers{"lws", "dm", "dmda", "dmdas", "dmdar", "heteroprio", "darts"};

/// A table of makespans, with ratios for the policy `plan`.
class Comparison {
 public:
  Comparison() {
    std::printf("%-30s %-24s %6s %5s", "machine", "flow", "tiles", "known");
    for (const std::string& sched : kOthers) std::printf(" %10s", sched.c_str());
    std::printf(" %10s %8s\n", "plan", "to best");
  }
  void add(const ModelledMachine& machine, const NamedFlow& flow, unsigned budget, bool is_known, Noise noise = {}) {
    double best = 1e300;
    std::vector<double> times;
    for (const std::string& sched : kOthers)
      best = std::min(best, times.emplace_back(makespan_ms(machine, flow, budget, is_known, sched, noise)));
    const double plan = makespan_ms(machine, flow, budget, is_known, "plan", noise);
    std::printf("%-30s %-24s %6u %5s", machine.name.c_str(), flow.name.c_str(), budget, is_known ? "yes" : "no");
    for (const double time : times) std::printf(" %10.1f", time);
    std::printf(" %10.1f %8.3f\n", plan, plan / best);
    worst_ = std::max(worst_, plan / best);
    if (plan > 1.03 * best) ++behind_;
    log_sum_ += std::log(plan / best);
    for (std::size_t i = 0; i < kOthers.size(); ++i) log_sums_[i] += std::log(times[i] / plan);
    ++count_;
  }
  /// Ratios to the best other policy in each case; `worst` is the largest one, `mean` the geometric mean.
  struct Result {
    double mean, worst;
  };
  Result result() const {
    const Result result{std::exp(log_sum_ / count_), worst_};
    std::printf(
        "%u cases: plan takes %.3f of the best other one in the geometric mean, %.3f at worst, and more than 1.03 in "
        "%u cases\n",
        count_, result.mean, result.worst, behind_);
    for (std::size_t i = 0; i < kOthers.size(); ++i)
      std::printf("  %-10s takes %.3f of plan in the geometric mean\n", kOthers[i].c_str(),
                  std::exp(log_sums_[i] / count_));
    return result;
  }

 private:
  double log_sum_ = 0, worst_ = 0;
  std::vector<double> log_sums_ = std::vector<double>(kOthers.size());
  unsigned count_ = 0, behind_ = 0;
};

TEST(SchedulingGrid, PlanIsNowhereFarBehindTheBestOther) {
  Comparison comparison;
  for (const ModelledMachine& machine : machines())
    for (const NamedFlow& flow : flows())
      for (const unsigned budget : {0U, 40U}) comparison.add(machine, flow, budget, true);
  const auto [mean, worst] = comparison.result();
  EXPECT_LT(mean, 1);
  EXPECT_LT(worst, 1.1);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : random_(seed) {}
  unsigned below(std::uint64_t limit) { return static_cast<unsigned>(random_() % limit); }
  /// A random number whose logarithm is uniform.
  double real(double from, double to) {
    return from * std::pow(to / from, static_cast<double>(random_() >> 11) * 0x1p-53);
  }

 private:
  std::mt19937_64 random_;
};

ModelledMachine random_machine(Random& random, std::uint64_t seed) {
  ModelledMachine machine{.name = "", .cores = 1 + random.below(24), .cards = {}, .copy_us = random.real(100, 4000)};
  const unsigned cards = 1 + random.below(5);
  const double strength = random.real(0.15, 2), other = random.below(3) == 0 ? random.real(0.15, 2) : strength;
  for (unsigned i = 0; i < cards; ++i) machine.cards.push_back(i < (cards + 1) / 2 ? strength : other);
  char name[64];
  std::snprintf(name, sizeof name, "%u: %u+%u of %.2f, %.2f", static_cast<unsigned>(seed), machine.cores, cards,
                strength, other);
  machine.name = name;
  return machine;
}

/// Adds a random machine, flow and budget.
void add_random(Comparison& comparison, std::uint64_t seed, Noise noise = {}) {
  Random random(seed);
  const auto draw = [&](std::uint64_t below) { return random.below(below); };
  const ModelledMachine machine = random_machine(random, seed);
  NamedFlow flow = flows()[draw(static_cast<std::uint64_t>(flows().size()))];
  const unsigned n = 6 + draw(14);
  if (flow.name.starts_with("cholesky")) flow.make = [n](Flow& f) { cholesky(f, n); };
  if (flow.name.starts_with("lu")) flow.make = [n](Flow& f) { lu(f, n * 3 / 4); };
  if (flow.name.starts_with("qr")) flow.make = [n](Flow& f) { qr(f, n * 2 / 3); };
  if (flow.name.starts_with("gemm")) flow.make = [n](Flow& f) { gemm(f, n * 2 / 3); };
  if (flow.name.starts_with("outer")) flow.make = [n](Flow& f) { outer(f, 2 * n); };
  if (flow.name.starts_with("independent")) flow.make = [n](Flow& f) { independent(f, 40 * n); };
  if (flow.name.starts_with("layers")) flow.make = [n](Flow& f) { layers(f, 4 * n, n); };
  flow.with_priorities = draw(2) == 0;
  flow.name = flow.name.substr(0, flow.name.find(',')) + (flow.with_priorities ? ", ranked" : "");
  const bool is_known = draw(3) != 0;
  const unsigned budget = draw(2) == 0 ? 0 : 12 + draw(80);
  comparison.add(machine, flow, budget, is_known, noise);
}

/// Runs as many cases as GRID_SEEDS says, from number GRID_FROM on.
template <class Add>
void for_seeds(const Add& add) {
  const char* const seeds = std::getenv("GRID_SEEDS");
  const std::uint64_t count = seeds != nullptr ? std::strtoull(seeds, nullptr, 10) : 40;
  const char* const from = std::getenv("GRID_FROM");
  const std::uint64_t first = from != nullptr ? std::strtoull(from, nullptr, 10) : 1;
  for (std::uint64_t seed = first; seed < first + count; ++seed) add(seed);
}

TEST(SchedulingGrid, PlanIsAheadOnRandomMachines) {
  Comparison comparison;
  for_seeds([&](std::uint64_t seed) { add_random(comparison, seed); });
  EXPECT_LT(comparison.result().mean, 1);
}

/// Adds a random case with a flow that uses data repeatedly.
void add_random_reuse(Comparison& comparison, std::uint64_t seed) {
  Random random(seed);
  const ModelledMachine machine = random_machine(random, seed);
  const unsigned kind = random.below(4), count = 6 + random.below(50), steps = 8 + random.below(24);
  const auto kernel = [&] { return kKernels[random.below(kKernels.size())].name; };
  const std::string_view first = kernel(), second = kernel();
  const bool ranked = random.below(3) == 0;
  NamedFlow flow;
  if (kind == 0) flow = {"chains", ranked, [=](Flow& f) { chains(f, count, steps, first); }};
  if (kind == 1) flow = {"phases", ranked, [=](Flow& f) { phases(f, count, steps, first, second); }};
  if (kind == 2) flow = {"stencil", ranked, [=](Flow& f) { stencil(f, count, steps, first); }};
  if (kind == 3) flow = {"sweep", ranked, [=](Flow& f) { sweep(f, count, steps, first); }};
  flow.name +=
      " " + std::to_string(count) + "x" + std::to_string(steps) + " " + std::string(first) + (ranked ? ", ranked" : "");
  const unsigned budget = random.below(2) == 0 ? 0 : 8 + random.below(2 * count);
  comparison.add(machine, flow, budget, random.below(3) != 0);
}

TEST(SchedulingGrid, PlanIsAheadWhereKernelsVary) {
  Comparison comparison;
  for_seeds([&](std::uint64_t seed) { add_random(comparison, seed, {.deviation = 0.5, .seed = seed}); });
  EXPECT_LT(comparison.result().mean, 1);
}

TEST(SchedulingGrid, PlanLoadsWhatFreesMostWhereMemoryIsSmall) {
  Comparison comparison;
  const NamedFlow flow{"products in any order", false, [](Flow& f) { outer(f, 32, 5); }};
  for (const ModelledMachine& machine : machines())
    for (const unsigned budget : {12U, 20U, 40U}) comparison.add(machine, flow, budget, true);
  const auto [mean, worst] = comparison.result();
  EXPECT_LT(mean, 1.02) << "1.12 without a look at what is used again";
  EXPECT_LT(worst, 1.1);
}

/// A flow in which each tile goes through all stages, and is submitted with all of them before the next tile.
void pipeline(Flow& flow, unsigned count) {
  for (const Tile& tile : flow.tiles(count))
    for (const std::string_view kernel : {"a", "b", "c", "a", "b"}) flow.task(kernel, {}, {tile});
}

TEST(SchedulingGrid, PlanRunsChainsSideBySide) {
  Comparison comparison;
  const NamedFlow products{"few products", false, [](Flow&f) { gemm(f, 4); }},
      stages{"pipeline", false, [](Flow&f) { pipeline(f, 200); }};
  comparison.add({.name = "10 cores, 5 weak cards", .cores = 10, .cards = std::vector<double>(5, 0.19), .copy_us = 614},
                 products, 0, true);
  for (const ModelledMachine& machine : machines())
    for (const unsigned budget : {0U, 12U, 30U}) comparison.add(machine, stages, budget, true);
  const auto [mean, worst] = comparison.result();
  EXPECT_LT(mean, 0.98);
  EXPECT_LT(worst, 1.05) << "1.24 where chains run to their ends one after the other";
}

TEST(SchedulingGrid, PlanIsNotFarBehindWhereDataIsUsedAgain) {
  Comparison comparison;
  for_seeds([&](std::uint64_t seed) { add_random_reuse(comparison, seed); });
  const auto [mean, worst] = comparison.result();
  EXPECT_LT(mean, 1.01);
  EXPECT_LT(worst, 1.25) << "1.43 where chains of two kinds of tasks go on in step";
}

/// One of the four operations of dense linear algebra, whose tasks prefer devices, and the number of its tiles.
struct SizedFlow {
  NamedFlow flow;
  unsigned tiles;
};

std::vector<SizedFlow> sized_flows() {
  std::vector<SizedFlow> made;
  const auto add = [&](const std::string& name, unsigned n, unsigned tiles, void (*make)(Flow&, unsigned)) {
    made.push_back({{name + " " + std::to_string(n), true, [=](Flow& f) { make(f, n); }, Where::rather_on_cards},
                    tiles});
  };
  for (const unsigned n : {3U, 6U, 9U, 12U}) add("gemm", n, 3 * n * n, gemm);
  for (const unsigned n : {4U, 8U, 16U, 24U}) add("cholesky", n, n * (n + 1) / 2, cholesky);
  for (const unsigned n : {4U, 8U, 12U, 18U}) add("lu", n, n * n, lu);
  for (const unsigned n : {4U, 8U, 12U, 16U}) add("qr", n, n * n, qr);
  return made;
}

/// Makespans on cores alone, devices alone, and both.
class Together {
 public:
  explicit Together(bool is_known) : is_known_(is_known) {
    std::printf("%-30s %-14s %6s %10s %10s %10s %8s\n", "machine", "flow", "tiles", "cores", "cards", "together",
                "to best");
  }
  void add(const ModelledMachine& machine, const NamedFlow& flow, unsigned budget) {
    ModelledMachine cores = machine, cards = machine;
    cores.cards.clear();
    cards.cores = 0;
    const double cores_ms = makespan_ms(cores, flow, budget, is_known_, "lws", {}),
                 cards_ms = makespan_ms(cards, flow, budget, is_known_, "plan", {}),
                 together_ms = makespan_ms(machine, flow, budget, is_known_, "plan", {}),
                 ratio = together_ms / std::min(cores_ms, cards_ms);
    std::printf("%-30s %-14s %6u %10.1f %10.1f %10.1f %8.3f\n", machine.name.c_str(), flow.name.c_str(), budget,
                cores_ms, cards_ms, together_ms, ratio);
    worst_ = std::max(worst_, ratio);
    log_sum_ += std::log(ratio);
    if (ratio > 1.01) ++slower_;
    ++count_;
  }
  struct Result {
    double mean, worst;
  };
  Result result() const {
    const Result result{std::exp(log_sum_ / count_), worst_};
    std::printf(
        "%u cases: together %.3f of the better alone in the geometric mean, %.3f at worst, and more than 1.01 in %u "
        "cases\n",
        count_, result.mean, result.worst, slower_);
    return result;
  }

 private:
  const bool is_known_;
  double worst_ = 0, log_sum_ = 0;
  unsigned count_ = 0, slower_ = 0;
};

Together::Result on_all_machines(bool is_known) {
  Together together(is_known);
  for (const ModelledMachine& machine : machines())
    for (const auto& [flow, tiles] : sized_flows())
      for (const unsigned budget : {0U, std::max(8U, tiles / 3)}) together.add(machine, flow, budget);
  return together.result();
}

TEST(SchedulingGrid, CoresAndCardsTogetherAreAsFastAsTheBetterAlone) {
  const auto [mean, worst] = on_all_machines(true);
  EXPECT_LT(mean, 0.85);
  EXPECT_LT(worst, 1.08) << "few tiles for many cards";
}

TEST(SchedulingGrid, CardsComeFirstInFirstRuns) {
  const auto [mean, worst] = on_all_machines(false);
  EXPECT_LT(mean, 0.93) << "1.10 where every core tries";
  EXPECT_LT(worst, 1.6) << "5.4 where every core tries";
}

}  // namespace
}  // namespace tandem::scheduling_grid_test
