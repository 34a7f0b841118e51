// tandem/api/placing_test.cpp: policies that place tasks, in runtimes: mixed machines, callers that leave, small
// memories.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/api/test_support.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/runtime/memory/memory_node.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/sched/placing/placer.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem::placing_test {
namespace {

using test::loop_runtime;
using testing::Each;

// --- Cholesky on a modelled machine

constexpr unsigned kCores = 8;
constexpr unsigned kCards = 2;

/// A kernel of the factorisation.
struct Kernel {
  std::string_view name;
  double core_ns;  ///< time on a core
  double speedup;  ///< on a device, relative to a core
  double card_ns() const { return core_ns / speedup; }
};
/// Kernels on tiles of 960 x 960, on cores of 20 GFlop/s.
constexpr std::array<Kernel, 4> kKernels{
    {{"potrf", 14.7e6, 2}, {"trsm", 44.2e6, 11}, {"syrk", 44.2e6, 26}, {"gemm", 88.5e6, 25}}};
/// Copies of such tiles, 7.4 MB each, at 12 GB/s. The tiles of the test are smaller.
constexpr std::size_t kTileRows = 4;
constexpr std::size_t kTileBytes = kTileRows * kTileRows * sizeof(double);
const runtime::MachineLink kLink{.bytes_per_ns = kTileBytes / 614e3, .latency_ns = 10'000};

std::optional<std::int64_t> duration_of(const runtime::EmulatedTask& task) {
  for (const Kernel& kernel : kKernels)
    if (kernel.name == task.codelet)
      return static_cast<std::int64_t>(task.device == DeviceKind::cpu ? kernel.core_ns : kernel.card_ns());
  return {};
}

std::array<double, 4> kernels_of(unsigned tiles) {
  const double n = tiles;
  return {n, n * (n - 1) / 2, n * (n - 1) / 2, n * (n - 1) * (n - 2) / 6};
}

/// The larger of two lower bounds of the makespan: workers that are never idle (the kernels that gain most go to the
/// devices, which solves the linear program for two kinds), and the chain of potrf, trsm and syrk, all on devices.
double bound_ns(unsigned tiles) {
  std::array<unsigned, 4> order{0, 1, 2, 3};
  std::sort(order.begin(), order.end(),
            [](unsigned a, unsigned b) { return kKernels[a].speedup > kKernels[b].speedup; });
  const std::array<double, 4> counts = kernels_of(tiles);
  double low = 0, high = 1e15;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    double card_ns = kCards * middle, core_ns = kCores * middle;
    for (const unsigned kernel : order) {
      const double on_cards = std::min(counts[kernel], card_ns / kKernels[kernel].card_ns());
      card_ns -= on_cards * kKernels[kernel].card_ns();
      core_ns -= (counts[kernel] - on_cards) * kKernels[kernel].core_ns;
    }
    (core_ns >= 0 ? high : low) = middle;
  }
  const double chain_ns = tiles * kKernels[0].card_ns() + (tiles - 1) * (kKernels[1].card_ns() + kKernels[2].card_ns());
  return std::max(high, chain_ns);
}

/// Makespan of the factorisation of `tiles` x `tiles` tiles.
double makespan_ns(unsigned tiles, const std::string& sched) {
  runtime::CoreOptions options;
  options.emulation = duration_of;
  options.tasks_per_step = 1;
  auto rt = loop_runtime({.workers = kCores, .sched = sched, .devices = kCards, .link = kLink}, options);
  using In = MatrixView<const double>;
  using Out = MatrixView<double>;
  const auto both = [](const char* name, auto kernel) { return Codelet(name, kernel).also(DeviceKind::user, kernel); };
  const auto fill = Codelet("fill", [](Out) {});
  const auto potrf = both("potrf", [](Out) {});
  const auto trsm = both("trsm", [](In, Out) {});
  const auto syrk = both("syrk", [](In, Out) {});
  const auto gemm = both("gemm", [](In, In, Out) {});
  std::vector<std::vector<Data<Matrix<double>>>> a(tiles);
  for (unsigned i = 0; i < tiles; ++i)
    for (unsigned j = 0; j <= i; ++j) {
      a[i].push_back(rt->matrix<double>("a", kTileRows, kTileRows));
      rt->submit(fill, write(a[i][j]));
    }
  rt->wait();
  const std::int64_t began_ns = rt->resources().loop->now_ns();
  const auto urgency = [&](unsigned k, unsigned i, unsigned j) { return static_cast<int>(3 * tiles - k - i - j); };
  for (unsigned k = 0; k < tiles; ++k) {
    rt->submit({.priority = urgency(k, k, k)}, potrf, read_write(a[k][k]));
    for (unsigned i = k + 1; i < tiles; ++i)
      rt->submit({.priority = urgency(k, i, k)}, trsm, read(a[k][k]), read_write(a[i][k]));
    for (unsigned i = k + 1; i < tiles; ++i) {
      rt->submit({.priority = urgency(k, i, i)}, syrk, read(a[i][k]), read_write(a[i][i]));
      for (unsigned j = k + 1; j < i; ++j)
        rt->submit({.priority = urgency(k, i, j)}, gemm, read(a[i][k]), read(a[j][k]), read_write(a[i][j]));
    }
  }
  rt->wait();
  return static_cast<double>(rt->resources().loop->now_ns() - began_ns);
}

TEST(PlacedCholesky, ComesCloseToTheBoundWhereStealingDoesNot) {
  for (const unsigned tiles : {12U, 40U}) {
    const double bound = bound_ns(tiles);
    const auto ratio = [&](const char* sched) {
      const double times = makespan_ns(tiles, sched) / bound;
      std::printf("%u x %u tiles, %-6s %.3f times the bound\n", tiles, tiles, sched, times);
      return times;
    };
    const double lws = ratio("lws"), prio = ratio("prio"), dm = ratio("dm"), dmda = ratio("dmda"),
                 dmdas = ratio("dmdas");
    const double heteroprio = ratio("heteroprio"), plan = ratio("plan");
    ratio("darts");
    EXPECT_EQ(prio, lws) << "cores and cards share one queue by priority";
    if (tiles == 12) {  // the critical path is long: its tasks cost much on a core
      EXPECT_LT(dm, 0.75 * lws);
      EXPECT_LT(dmda, 0.75 * lws);
      EXPECT_LT(dmdas, 0.6 * lws);
      EXPECT_LT(plan, 1.03 * dmdas);
    } else {
      EXPECT_LT(dmda, 0.96 * lws);
      EXPECT_LT(dmdas, 0.94 * lws);
      EXPECT_LE(dmdas, 1.05);
      EXPECT_LE(plan, 1.05);
      EXPECT_LT(heteroprio, lws);
    }
  }
}

// --- the choice of workers

constexpr std::array<const char*, 7> kPolicies{"dm", "dmda", "dmdas", "dmdar", "heteroprio", "darts", "plan"};

std::vector<std::uint64_t> tasks_of(Runtime& rt) {
  std::vector<std::uint64_t> counts;
  for (const runtime::WorkerReport& worker : rt.statistics().workers) counts.push_back(worker.tasks);
  return counts;
}

runtime::CoreOptions takes(std::int64_t core_ns, std::int64_t card_ns) {
  runtime::CoreOptions options;
  options.emulation = [=](const runtime::EmulatedTask& task) {
    return std::optional(task.device == DeviceKind::cpu ? core_ns : card_ns);
  };
  options.tasks_per_step = 1;
  return options;
}

const auto kWork = Codelet("work", [](double&) {}).also(DeviceKind::user, [](double&) {});

TEST(Placing, FindsTheFasterWorkersByTrial) {
  for (const char* sched : kPolicies) {
    auto rt = loop_runtime({.workers = 2, .sched = sched, .devices = 1, .copy_ns = 0}, takes(1'000'000, 10'000));
    std::vector<double> values(20);
    std::vector<Data<double>> data;
    for (double& value : values) data.push_back(rt->data("x", value));
    // The tasks run one after the other, so that each is placed when the one before it has been measured.
    for (int round = 0; round < 20; ++round)
      for (auto& x : data) {
        const auto task = rt->submit(kWork, read_write(x));
        rt->wait(task);
      }
    const auto counts = tasks_of(*rt);
    EXPECT_EQ(counts[0] + counts[1], 3U) << sched << ": three trials, and no more";
    EXPECT_EQ(counts[2], 397U) << sched;
  }
}

/// A `plan` that counts the kinds of tasks that it sees.
class CountingPlan final : public runtime::PullingPolicy {
 public:
  explicit CountingPlan(std::size_t& looks, std::size_t& kinds) : looks_(looks), kinds_(kinds) {}
  std::string_view name() const noexcept override { return "counting"; }
  std::string_view help() const noexcept override { return "plan, counted"; }
  bool treats_alike() const noexcept override { return plan_->pulling()->treats_alike(); }
  bool by_depth() const noexcept override { return plan_->pulling()->by_depth(); }
  const runtime::OpenTask* pick(unsigned worker, const runtime::ReadyView& ready,
                                const runtime::LoadView& load) const override {
    ++looks_;
    kinds_ += ready.kinds().size();
    return plan_->pulling()->pick(worker, ready, load);
  }

 private:
  const std::unique_ptr<runtime::Policy> plan_ = runtime::PolicyRegistry().make("plan");
  std::size_t& looks_;
  std::size_t& kinds_;
};

TEST(Placing, LooksAtFewKindsHoweverManyShapesThereAre) {
  constexpr unsigned kData = 4'000, kRounds = 3;
  std::vector<double> makespans_ns;
  for (const unsigned shapes : {1U, 1'000U, 4'000U}) {
    std::size_t looks = 0, kinds = 0;
    auto resources = test::test_resources();
    resources->policies.add("counting", [&] { return std::make_unique<CountingPlan>(looks, kinds); });
    runtime::World world = make_test_world({.workers = 2, .sched = "counting", .devices = 1, .copy_ns = 0}, *resources);
    Runtime rt(std::move(resources), std::move(world), takes(1'000'000, 50'000));
    const auto kernel = [](std::span<char>) {};
    const auto work = Codelet("work", kernel).also(DeviceKind::user, kernel);
    std::vector<std::vector<char>> values;
    std::vector<Data<Vector<char>>> data;
    for (unsigned i = 0; i < kData; ++i) values.emplace_back(1 + i % shapes);
    for (std::vector<char>& one : values) data.push_back(rt.data("v", one));
    const std::int64_t began_ns = rt.resources().loop->now_ns();
    for (unsigned round = 0; round < kRounds; ++round)
      for (auto& one : data) rt.submit(work, read_write(one));
    rt.wait();
    makespans_ns.push_back(static_cast<double>(rt.resources().loop->now_ns() - began_ns));
    ASSERT_NE(looks, 0U);
    EXPECT_LE(static_cast<double>(kinds) / static_cast<double>(looks), 130) << shapes << " shapes";
    EXPECT_TRUE(rt.core().executor().placer()->check_invariants());
  }
  EXPECT_LT(makespans_ns[1], 1.1 * makespans_ns[0]);
  EXPECT_LT(makespans_ns[2], 1.1 * makespans_ns[0]) << "tasks of about the same size are compared with each other";
}

TEST(Placing, TriesNothingThatGivenEstimatesKnow) {
  struct Given final : runtime::Estimates {
    runtime::Estimate expected_ns(std::string_view codelet, model::Footprint, DeviceKind kind) const override {
      if (codelet != "work") return {};
      return {kind == DeviceKind::cpu ? 1e6 : 1e4, 0, true};
    }
  };
  auto resources = test::test_resources();
  runtime::World world = make_test_world({.workers = 2, .sched = "dm", .devices = 1, .copy_ns = 0}, *resources);
  world.estimates = std::make_unique<Given>();
  Runtime rt(std::move(resources), std::move(world), takes(1'000'000, 10'000));
  double value = 0;
  auto x = rt.data("x", value);
  for (int i = 0; i < 20; ++i) rt.submit(kWork, read_write(x));
  rt.wait();
  EXPECT_EQ(tasks_of(rt), (std::vector<std::uint64_t>{0, 0, 20}));
}

TEST(Placing, MovesNoDataWithDmdaThatIsNotWorthIt) {
  // A copy takes longer than the kernel saves.
  const runtime::MachineLink slow{.bytes_per_ns = 8, .latency_ns = 1'000'000};
  const auto on_card = [&](const char* sched, double copy_weight = 1) {
    runtime::CoreOptions options = takes(100'000, 50'000);
    options.copy_weight = copy_weight;
    auto rt = loop_runtime({.workers = 2, .sched = sched, .devices = 1, .link = slow}, options);
    std::vector<double> values(200);
    std::vector<Data<double>> data;
    for (double& value : values) data.push_back(rt->data("x", value));
    for (auto& x : data) {
      const auto task = rt->submit(kWork, read_write(x));
      rt->wait(task);
    }
    return tasks_of(*rt)[2];
  };
  EXPECT_EQ(on_card("dmda"), 3U) << "the trials";
  EXPECT_GT(on_card("dm"), 150U);
  EXPECT_GT(on_card("dmda", 0), 150U) << "copies are ignored";
  EXPECT_GT(on_card("dmda", 0.01), 150U);
}

TEST(Placing, CountsTheCopiesToWhichSumsAreAdded) {
  // A kernel takes half as long on the device, and a copy takes longer than that saves.
  struct Given final : runtime::Estimates {
    runtime::Estimate expected_ns(std::string_view, model::Footprint, DeviceKind kind) const override {
      return {kind == DeviceKind::cpu ? 1e5 : 5e4, 0, true};
    }
  };
  const auto card_alone =
      Codelet("work there", [](double&) {
      }).also(DeviceKind::user, [](double&) {
        }).can_run([](const WorkerDescription& worker) { return worker.device == DeviceKind::user; });
  const auto on_card = [&](const char* sched, bool is_there) {
    auto resources = test::test_resources();
    runtime::World world = make_test_world({.workers = 2,
                                            .sched = sched,
                                            .devices = 1,
                                            .link = runtime::MachineLink{.bytes_per_ns = 8, .latency_ns = 1'000'000}},
                                           *resources);
    world.estimates = std::make_unique<Given>();
    Runtime rt(std::move(resources), std::move(world), takes(100'000, 50'000));
    double value = 0;
    auto sum = rt.data("sum", value);
    sum.reduction([](double& copy) { copy = 0; }, [](double& into, const double& from) { into += from; });
    if (is_there) rt.wait(rt.submit(card_alone, reduce(sum)));
    for (int i = 0; i < 20; ++i) rt.wait(rt.submit(kWork, reduce(sum)));  // one after the other
    return tasks_of(rt)[2];
  };
  EXPECT_EQ(on_card("dm", false), 20U) << "copies are ignored";
  for (const char* sched : {"dmda", "dmdas", "dmdar"}) {
    EXPECT_EQ(on_card(sched, false), 0U) << sched << ": a copy would have to be brought";
    EXPECT_EQ(on_card(sched, true), 21U) << sched << ": one is there, and free";
  }
}

/// A policy that gives task i to worker `to[i]`, and notes what it knows of links at each choice.
struct LinkSpy final : runtime::PlacingPolicy {
  struct Seen {
    /// Load of the links from main memory to the devices, and from the second device to the first.
    double to_second = 0, to_first = 0, between = 0;
    std::int64_t queued_ns = 0;                       ///< waiting time of the link to the second device
    double copy_ns = 0;                               ///< time of a copy of 1000 bytes to the second device
  };
  explicit LinkSpy(std::vector<Seen>& s) : seen(s) {}
  std::string_view name() const noexcept override { return "spy"; }
  std::string_view help() const noexcept override { return "looks at links"; }
  bool by_priority() const noexcept override { return false; }
  unsigned choose(const runtime::TaskView&, const runtime::LoadView& load) const override {
    seen.push_back({load.link(0, 2).load, load.link(0, 1).load, load.link(2, 1).load,
                    load.link(0, 2).free_ns - load.now_ns, load.link(0, 2).copy_ns(1'000)});
    return static_cast<unsigned>(std::min<std::size_t>(seen.size(), 2));
  }
  std::vector<Seen>& seen;
};

/// A policy that gives all tasks to worker 2.
struct OnlyOne final : runtime::PullingPolicy {
  std::string_view name() const noexcept override { return "one"; }
  std::string_view help() const noexcept override { return "one worker runs all"; }
  const runtime::OpenTask* pick(unsigned worker, const runtime::ReadyView& ready,
                                const runtime::LoadView&) const override {
    return worker == 2 ? runtime::MostUrgentFirst(ready.kinds()).next() : nullptr;
  }
};

TEST(Placing, AsksOnForOtherWorkersWhenOneIsLeftWithoutATask) {
  auto resources = test::test_resources();
  resources->policies.add("one", [] { return std::make_unique<OnlyOne>(); });
  runtime::World world = make_test_world({.workers = 3, .sched = "one", .devices = 1, .copy_ns = 0}, *resources);
  Runtime rt(std::move(resources), std::move(world), takes(1'000'000, 1'000'000));
  std::vector<double> values(40);
  for (double& value : values) {  // one after the other: when it becomes ready no worker is busy
    rt.submit(kWork, read_write(rt.data("x", value)));
    rt.wait();
  }
  const auto counts = tasks_of(rt);
  EXPECT_LE(counts[0] + counts[1] + counts[3], 6U) << "three trials of each kind, and no more";
}

struct AlwaysKnown final : runtime::Estimates {
  runtime::Estimate expected_ns(std::string_view, model::Footprint, DeviceKind) const override {
    return {1'000, 0, true};
  }
};

/// A policy that notes in which order tasks go to workers, and their depths.
struct DepthSpy final : runtime::PullingPolicy {
  using Seen = std::vector<std::pair<std::string, std::uint32_t>>;
  explicit DepthSpy(Seen& s) : seen(s) {}
  std::string_view name() const noexcept override { return "spy"; }
  std::string_view help() const noexcept override { return "for a test"; }
  bool by_depth() const noexcept override { return true; }
  const runtime::OpenTask* pick(unsigned, const runtime::ReadyView& ready, const runtime::LoadView&) const override {
    const runtime::OpenTask* const first = runtime::MostUrgentFirst(ready.kinds()).next();
    seen.emplace_back(ready.kind_of(*first).codelet, first->depth);
    return first;
  }
  Seen& seen;
};

TEST(Placing, CountsHowManyTasksATaskFollowsInARow) {
  DepthSpy::Seen seen;
  auto resources = test::test_resources();
  resources->policies.add("spy", [&] { return std::make_unique<DepthSpy>(seen); });
  runtime::World world = make_test_world({.workers = 1, .sched = "spy", .devices = 1, .copy_ns = 0}, *resources);
  world.estimates = std::make_unique<AlwaysKnown>();
  runtime::CoreOptions options = takes(1'000, 1'000);
  options.tasks_per_step = 1;
  Runtime rt(std::move(resources), std::move(world), options);
  const auto reads = [](const double&) {};
  const auto changes = [](double&) {};
  const auto anywhere = [](const char* name, auto kernel) {
    return Codelet(name, kernel).also(DeviceKind::user, kernel);
  };
  std::array<double, 3> values{};
  const auto x = rt.data("x", values[0]), y = rt.data("y", values[1]), z = rt.data("z", values[2]);
  const auto depth_of = [&](const std::string& name) {
    const auto found = std::ranges::find(seen, name, &std::pair<std::string, std::uint32_t>::first);
    return found != seen.end() ? found->second : 0;
  };
  rt.submit(anywhere("x1", changes), write(x));
  rt.submit(anywhere("x2", changes), read_write(x));
  rt.submit(anywhere("x3", reads), read(x));
  rt.submit(anywhere("y3", [](const double&, double&) {}), read(x), write(y));
  rt.submit(anywhere("x4", changes), read_write(x));
  rt.submit(anywhere("z1", changes), write(z));
  rt.wait();
  EXPECT_EQ(depth_of("x1"), 1U);
  EXPECT_EQ(depth_of("x2"), 2U);
  EXPECT_EQ(depth_of("x3"), 3U);
  EXPECT_EQ(depth_of("y3"), 3U);
  EXPECT_EQ(depth_of("x4"), 4U) << "it follows those that read";
  EXPECT_EQ(depth_of("z1"), 1U);
  ASSERT_GE(seen.size(), 2U);
  EXPECT_EQ(seen[0].first, "x1");
  EXPECT_EQ(seen[1].first, "z1") << "it stands last in the flow, and follows nothing";

  Graph graph = rt.record([&] {
    rt.submit(anywhere("first", changes), read_write(x));
    rt.submit(anywhere("second", changes), read_write(x));
  });
  seen.clear();
  rt.replay(graph);
  rt.submit(anywhere("between", changes), read_write(x));
  rt.wait();
  const std::uint32_t before = depth_of("first");
  EXPECT_GT(before, 4U);
  EXPECT_EQ(depth_of("second"), before + 1);
  EXPECT_EQ(depth_of("between"), before + 2);
  seen.clear();
  rt.replay(graph);
  rt.wait();
  EXPECT_EQ(depth_of("first"), before + 3) << "a replay follows all that its data have met";
  EXPECT_EQ(depth_of("second"), before + 4);
}

TEST(Placing, TakesTheRateUnderLoadWhenOtherLinksAreBusy) {
  std::vector<LinkSpy::Seen> seen;
  auto resources = test::test_resources();
  resources->policies.add("spy", [&] { return std::make_unique<LinkSpy>(seen); });
  const runtime::MachineLink link{.bytes_per_ns = 0.01, .latency_ns = 0};
  runtime::World world = make_test_world({.workers = 1, .sched = "spy", .devices = 2, .link = link}, *resources);
  for (runtime::MachineLink& known : world.machine.links) known.loaded_bytes_per_ns = 0.001;
  Runtime rt(std::move(resources), std::move(world), takes(1'000'000, 1'000'000));
  std::vector<double> values(125);
  std::vector<Data<double>> data;
  for (double& value : values) data.push_back(rt.data("x", value));
  for (auto& x : data) rt.submit(kWork, read_write(x));
  rt.wait();
  ASSERT_GE(seen.size(), 4U);
  // Five of the six links touch the memories of each.
  EXPECT_EQ(seen[0].to_second, 0) << "nothing is copied yet";
  EXPECT_EQ(seen[0].copy_ns, 100'000);
  EXPECT_DOUBLE_EQ(seen[1].to_second, 0.2) << "the first task's data is on its way to the first card";
  EXPECT_DOUBLE_EQ(seen[1].to_first, 0);
  EXPECT_DOUBLE_EQ(seen[1].copy_ns, 0.8 * 100'000 + 0.2 * 1'000'000);
  EXPECT_DOUBLE_EQ(seen[2].to_first, 0.2);
  EXPECT_DOUBLE_EQ(seen[2].between, 0.4) << "both links from main memory end where it begins and ends";
  EXPECT_NEAR(static_cast<double>(seen[2].queued_ns - seen[1].queued_ns), 0.8 * 800 + 0.2 * 8'000, 10)
      << "8 bytes under load";
}

TEST(Placing, TakesTheRateBesideMessagesWhileLargeOnesAreUnderWay) {
  std::vector<LinkSpy::Seen> seen;
  auto resources = test::test_resources();
  resources->policies.add("spy", [&] { return std::make_unique<LinkSpy>(seen); });
  const runtime::MachineLink link{.bytes_per_ns = 0.01, .latency_ns = 0, .beside_messages_bytes_per_ns = 0.001};
  runtime::World world = make_test_world({.workers = 1, .sched = "spy", .devices = 2, .link = link}, *resources);
  Runtime rt(std::move(resources), std::move(world), takes(1'000'000, 1'000'000));
  runtime::MessageWatch& watch = rt.core().executor().messages();
  EXPECT_TRUE(watch.matters(1 << 20));
  EXPECT_FALSE(watch.matters(1'000)) << "it does not last";
  std::array<double, 4> values{};
  std::size_t next = 0;
  const auto copy_ns = [&] {
    auto x = rt.data("x", values.at(next++));
    rt.submit(kWork, read_write(x));
    rt.wait();
    return seen.back().copy_ns;
  };
  EXPECT_EQ(copy_ns(), 100'000);
  runtime::WatchedMessage one, other;
  watch.begin_data(one, 1 << 20, {});
  watch.begin_data(other, 1 << 20, {});
  EXPECT_EQ(copy_ns(), 1'000'000);
  watch.end_data(one);
  EXPECT_EQ(copy_ns(), 1'000'000) << "one is left";
  watch.end_data(other);
  EXPECT_EQ(copy_ns(), 100'000);
}

TEST(Placing, CountsNoMessagesWhereNothingIsKnownOfThem) {
  auto rt = loop_runtime({.workers = 1, .sched = "dmda", .devices = 1, .link = runtime::MachineLink{}}, {});
  EXPECT_FALSE(rt->core().executor().messages().matters(SIZE_MAX));
}

TEST(Placing, RunsFirstWhatHasItsDataWithDmdar) {
  // The device is busy while tasks with old and new data queue for it.
  const auto order_with = [](const char* sched) {
    auto rt = loop_runtime({.workers = 1, .sched = sched, .devices = 1, .copy_ns = 0}, takes(1'000'000, 1'000));
    const auto on_card =
        Codelet("work", [](double&) {
        }).also(DeviceKind::user, [](double&) {
          }).can_run([](const WorkerDescription& worker) { return worker.device == DeviceKind::user; });
    std::vector<double> values(12);
    std::vector<Data<double>> data;
    for (double& value : values) data.push_back(rt->data("x", value));
    for (int i = 6; i < 12; ++i) rt->submit(on_card, read_write(data[i]));  // they are on the device from then on
    rt->wait();
    std::vector<int> order;
    for (int i = 0; i < 12; ++i)
      rt->submit({.callback = [&order, i] { order.push_back(i); }}, on_card, read_write(data[i]));
    rt->wait();
    return order;
  };
  const auto by_data = order_with("dmdar"), in_order = order_with("dmda");
  ASSERT_EQ(by_data.size(), 12U);
  EXPECT_LT(std::ranges::find(by_data, 11) - by_data.begin(), std::ranges::find(by_data, 5) - by_data.begin());
  EXPECT_GT(std::ranges::find(in_order, 11) - in_order.begin(), std::ranges::find(in_order, 5) - in_order.begin());
}

TEST(Placing, RunsTheMostUrgentFirstWhereThePolicySorts) {
  for (const std::string sched : {"dmda", "dmdas", "heteroprio", "plan"}) {
    auto rt = loop_runtime({.workers = 1, .sched = sched, .devices = 1}, {});
    std::vector<int> order;
    const auto note = Codelet("note", [&](int number) { order.push_back(number); });
    for (const int priority : {1, 3, 2}) rt->submit({.priority = priority}, note, priority);
    rt->wait();
    EXPECT_EQ(order, sched == "dmda" ? (std::vector<int>{1, 3, 2}) : (std::vector<int>{3, 2, 1}));
  }
}

TEST(Placing, LeavesMachinesOfEqualCoresToStealing) {
  const auto order_with = [](const char* sched) {
    auto rt = loop_runtime({.seed = 5, .workers = 4, .sched = sched});
    EXPECT_EQ(rt->core().executor().placer(), nullptr);
    std::vector<int> order;
    const auto note = Codelet("note", [&](int number) { order.push_back(number); });
    for (int i = 0; i < 100; ++i) rt->submit({.priority = i % 7}, note, i);
    rt->wait();
    return order;
  };
  for (const char* sched : {"dmdas", "plan"}) EXPECT_EQ(order_with(sched), order_with("lws"));
}

TEST(Placing, GivesACardNoTaskThatDoesNotFitThere) {
  for (const char* sched : kPolicies) {
    auto rt = loop_runtime({.workers = 2, .sched = sched, .devices = 1, .device_bytes = 100}, takes(100'000, 1'000));
    const auto work = Codelet("large", [](std::span<double>) {}).also(DeviceKind::user, [](std::span<double>) {});
    const auto fill = Codelet("fill", [](std::span<double>) {});
    auto large = rt->vector<double>("large", 20);
    auto small = rt->vector<double>("small", 5);
    rt->submit(fill, write(large));
    rt->submit(fill, write(small));
    for (int i = 0; i < 20; ++i) {
      rt->submit(work, read_write(large));
      rt->submit(work, read_write(small));
    }
    rt->wait();
    const auto report = rt->statistics();
    EXPECT_GT(report.workers[2].tasks, 10U) << sched;
    EXPECT_GE(report.workers[0].tasks + report.workers[1].tasks, 22U) << sched;
    for (const auto& worker : report.workers) EXPECT_EQ(worker.fallbacks, 0U) << sched;
  }
}

TEST(Placing, PlacesTheTasksOfARecordedGraphAtEachReplay) {
  for (const char* sched : kPolicies) {
    auto rt = loop_runtime({.workers = 2, .sched = sched, .devices = 1, .copy_ns = 0}, takes(1'000'000, 10'000));
    double value = 0;
    auto x = rt->data("x", value);
    auto graph = rt->record([&] {
      for (int i = 0; i < 4; ++i) rt->submit(kWork, read_write(x));
    });
    for (int i = 0; i < 10; ++i) {
      rt->replay(graph);
      rt->wait();
    }
    const auto counts = tasks_of(*rt);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}), 40U);
    EXPECT_EQ(counts[2], 37U) << sched;
  }
}

/// A policy also places tasks that all cores can run: their data may be nearer to some of them.
TEST(Placing, GivesTasksOfCoresToWorkersWhereMemoriesDiffer) {
  for (const char* sched : {"dmda", "plan"}) {
    auto resources = test::test_resources();
    runtime::World world = make_test_world({.workers = 4, .sched = sched}, *resources);
    const runtime::NodeIndex far =
        world.add_memory({.kind = runtime::NodeKind::numa, .name = "NUMA node 1", .numa_node = 1},
                         runtime::make_main_memory(), runtime::make_processor_copier());
    world.machine.workers[2].node = world.machine.workers[3].node = far;
    Runtime rt(std::move(resources), std::move(world), runtime::CoreOptions());
    const Codelet work("work", [](double& x) { x += 1; });
    std::vector<double> values(40);
    std::vector<Data<double>> data;
    for (double& value : values) rt.submit(work, read_write(data.emplace_back(rt.data("x", value))));
    const auto charged = rt.core().executor().placer()->charged();
    EXPECT_EQ(std::accumulate(charged.begin(), charged.end(), 0U), sched == std::string("plan") ? 3U : 40U)
        << sched << ": those that are ready; plan gives one to each, but not to a caller that does not wait";
    rt.wait();
    EXPECT_THAT(rt.core().executor().placer()->charged(), Each(0U));
    for (auto& x : data) EXPECT_EQ(*rt.acquire(read(x)), 1) << sched;
  }
}

TEST(Placing, ChargesNobodyWhenAllTasksHaveEnded) {
  for (const char* sched : kPolicies) {
    auto rt = loop_runtime({.workers = 3, .sched = sched, .devices = 2}, takes(5'000, 1'000));
    std::vector<double> values(30);
    std::vector<Data<double>> data;
    for (double& value : values) data.push_back(rt->data("x", value));
    runtime::Placer* const placer = rt->core().executor().placer();
    ASSERT_NE(placer, nullptr);
    for (int round = 0; round < 5; ++round)
      for (auto& x : data) rt->submit(kWork, read_write(x));
    const auto charged = placer->charged();
    const unsigned all = std::accumulate(charged.begin(), charged.end(), 0U);
    if (placer->feeds()) EXPECT_LE(all, 3U + 2 * 3) << sched << ": the others wait";
    else EXPECT_EQ(all, 30U) << sched << ": those that are ready";
    EXPECT_TRUE(placer->check_invariants());
    rt->wait();
    EXPECT_THAT(placer->charged(), Each(0U)) << sched;
    EXPECT_TRUE(placer->check_invariants());
  }
}

/// The message is announced for a time in the middle of the second of ten long tasks, and comes at the end of the
/// third. So a core that would begin the second task waits for it, a quarter longer than announced, and then goes on.
TEST(Placing, CoresHoldForATaskThatArrivesAQuarterLongerThanAnnounced) {
  for (const char* sched : {"heteroprio", "darts", "plan"})
    for (const bool is_told : {true, false}) {
      auto resources = test::test_resources();
      runtime::World world = make_test_world({.workers = 1, .sched = sched, .devices = 1, .copy_ns = 0}, *resources);
      world.caller_works = false;
      const auto rt =
          std::make_unique<Runtime>(std::move(resources), std::move(world), takes(8'000'000, 2'000'000'000));
      runtime::Placer& placer = *rt->core().executor().placer();
      std::vector<double> values(11);
      std::vector<Data<double>> data;
      for (double& value : values) data.push_back(rt->data("x", value));
      for (int i = 0; i < 40; ++i) {  // some on each kind, so that durations are known
        rt->submit(kWork, read_write(data[i % 10]));
        if (i % 2 == 1) rt->wait();
      }
      const std::uint64_t held = rt->statistics().workers[0].holds;
      const std::int64_t began_ns = rt->resources().loop->now_ns();
      const auto ms = [&] { return static_cast<double>(rt->resources().loop->now_ns() - began_ns) * 1e-6; };
      Event message = rt->event("message", Release::with_readable, {}, write(data[10]));
      double urgent_ms = 0;
      rt->submit({.priority = 5, .callback = [&] { urgent_ms = ms(); }}, kWork, read_write(data[10]));
      const std::uint64_t number = rt->core().events().expect_end(message.task(), 10'000'000);
      EXPECT_NE(number, 0U);
      EXPECT_TRUE(placer.check_invariants());
      if (!is_told) rt->core().events().expect_no_more(number);
      for (int i = 0; i < 10; ++i) {
        const auto end = [&message, i] { if (i == 2) message.readable(); };
        rt->submit({.callback = end}, kWork, read_write(data[i]));
      }
      rt->wait();
      rt->core().events().expect_no_more(number);
      EXPECT_TRUE(placer.check_invariants());
      EXPECT_EQ(rt->statistics().workers[0].holds - held, is_told ? 1U : 0U) << sched;
      EXPECT_NEAR(urgent_ms, is_told ? 36.5 : 32, 0.1) << sched;
      EXPECT_NEAR(ms(), is_told ? 92.5 : 88, 0.1) << sched;
    }
}

// --- the caller

/// Two cores and a device, on threads.
std::unique_ptr<Runtime> threads_with_card(const char* sched) {
  auto resources = test::test_resources();
  const base::Config config = test::test_config({.workers = 2, .sched = sched, .more = {{"bind", "false"}}});
  runtime::World world = make_real_world(config, *resources);
  const runtime::NodeIndex node = world.add_memory({.kind = runtime::NodeKind::device, .name = "card"},
                                                   runtime::make_main_memory(), runtime::make_processor_copier());
  world.machine.workers.push_back({DeviceKind::user, node});
  return std::make_unique<Runtime>(std::move(resources), std::move(world), core_options(config));
}

TEST(Placing, GivesTheTasksOfACallerThatLeavesToOthers) {
  for (const char* sched : kPolicies) {
    auto rt = threads_with_card(sched);
    std::atomic<int> ended{0};
    const auto count = Codelet("count", [&](int us) {
      std::this_thread::sleep_for(std::chrono::microseconds(us));
      ++ended;
    });
    constexpr int kTasks = 200;
    double value = 0;
    auto x = rt->data("x", value);
    const auto touch = Codelet("touch", [](double& v) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      v += 1;
    });
    // The tasks are ready when `touch` ends, which is when the caller's wait for x ends, too: some are placed with the
    // caller.
    const auto first = rt->submit(touch, read_write(x));
    for (int i = 0; i < kTasks; ++i) rt->submit({.after = {first}}, count, 20);
    rt->wait(x);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (ended < kTasks && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(ended, kTasks) << sched << ": the caller does not wait, and the others must run them all";
    rt->wait();
  }
}

}  // namespace
}  // namespace tandem::placing_test
