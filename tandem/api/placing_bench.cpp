// tandem/api/placing_bench.cpp: measures the cost of a decision with each policy, on 14 cores and two modelled devices.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tandem/api/test_support.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/runtime/sched/policies/pulling_policy.hpp"

namespace tandem {
namespace {

constexpr unsigned kCores = 14;
constexpr unsigned kCards = 2;
constexpr unsigned kTiles = 24;

/// Estimates as if earlier runs had measured them.
class Known final : public runtime::Estimates {
 public:
  static std::int64_t ns(std::string_view codelet, DeviceKind kind) {
    const std::int64_t core_ns = codelet == "gemm" ? 100'000 : codelet == "potrf" ? 20'000 : 50'000;
    return kind == DeviceKind::cpu ? core_ns : core_ns / (codelet == "potrf" ? 2 : 20);
  }
  runtime::Estimate expected_ns(std::string_view codelet, model::Footprint, DeviceKind kind) const override {
    return {static_cast<double>(ns(codelet, kind)), 0, true};
  }
};

/// Time that a policy took for decisions. One thread runs all.
struct Thoughts {
  using Clock = std::chrono::steady_clock;
  Clock::duration time{};
  std::uint64_t count = 0;

  template <class Decide>
  auto timed(const Decide& decide) {
    const Clock::time_point begin = Clock::now();
    const auto decision = decide();
    time += Clock::now() - begin;
    ++count;
    return decision;
  }
  /// Time that reading the clock adds to each.
  static Clock::duration of_clock() {
    Thoughts nothing;
    for (int i = 0; i < 10'000; ++i) nothing.timed([] { return 0; });
    return nothing.time / nothing.count;
  }
};

/// Wraps a placing policy, and measures its time.
class TimedPlacing final : public runtime::PlacingPolicy {
 public:
  TimedPlacing(std::unique_ptr<runtime::Policy> policy, Thoughts& thoughts)
      : policy_(std::move(policy)), thoughts_(thoughts) {}
  std::string_view name() const noexcept override { return policy_->name(); }
  std::string_view help() const noexcept override { return policy_->help(); }
  bool by_priority() const noexcept override { return policy_->by_priority(); }
  bool by_data() const noexcept override { return policy_->by_data(); }
  unsigned choose(const runtime::TaskView& task, const runtime::LoadView& load) const override {
    return thoughts_.timed([&] { return policy_->placing()->choose(task, load); });
  }

 private:
  std::unique_ptr<runtime::Policy> policy_;
  Thoughts& thoughts_;
};

/// Wraps a pulling policy, and measures its time.
class TimedPulling final : public runtime::PullingPolicy {
 public:
  TimedPulling(std::unique_ptr<runtime::Policy> policy, Thoughts& thoughts)
      : policy_(std::move(policy)), thoughts_(thoughts) {}
  std::string_view name() const noexcept override { return policy_->name(); }
  std::string_view help() const noexcept override { return policy_->help(); }
  bool treats_alike() const noexcept override { return policy_->pulling()->treats_alike(); }
  bool uses_prices() const noexcept override { return policy_->pulling()->uses_prices(); }
  const runtime::OpenTask* pick(unsigned worker, const runtime::ReadyView& ready,
                                const runtime::LoadView& load) const override {
    return thoughts_.timed([&] { return policy_->pulling()->pick(worker, ready, load); });
  }

 private:
  std::unique_ptr<runtime::Policy> policy_;
  Thoughts& thoughts_;
};

/// The policy; if it decides for each task, it reports its time to `thoughts`.
std::unique_ptr<runtime::Policy> timed(std::unique_ptr<runtime::Policy> policy, Thoughts& thoughts) {
  if (policy->placing() != nullptr) return std::make_unique<TimedPlacing>(std::move(policy), thoughts);
  if (policy->pulling() != nullptr) return std::make_unique<TimedPulling>(std::move(policy), thoughts);
  return policy;
}

/// A Cholesky factorisation whose kernels take modelled time, so only the runtime's own time is measured. With `lws`
/// tasks wait in queues that workers share, and nothing is decided: the additional time of others is the cost of their
/// decisions and of the data for them. `decision`: time of the policy alone for a task, calls that return no task
/// included. `card_tiles`: number of tiles that fit into the memory of a device; 0: all.
void cholesky(benchmark::State& state, const std::string& sched, std::size_t card_tiles = 0) {
  std::uint64_t tasks = 0;
  Thoughts thoughts;
  for (auto _ : state) {
    state.PauseTiming();
    auto resources = test::test_resources();
    resources->policies.add(sched, [&, plain = resources->policies] { return timed(plain.make(sched), thoughts); });
    runtime::World world = make_test_world({.workers = kCores,
                                            .sched = sched,
                                            .devices = kCards,
                                            .link = runtime::MachineLink{.bytes_per_ns = 1, .latency_ns = 100},
                                            .device_bytes = card_tiles * sizeof(double)},
                                           *resources);
    world.estimates = std::make_unique<Known>();
    runtime::CoreOptions options;
    options.emulation = [](const runtime::EmulatedTask& task) { return Known::ns(task.codelet, task.device); };
    auto rt = std::make_unique<Runtime>(std::move(resources), std::move(world), options);
    const auto both = [](const char* name, auto kernel) {
      return Codelet(name, kernel).also(DeviceKind::user, kernel);
    };
    const auto potrf = both("potrf", [](double&) {});
    const auto trsm = both("trsm", [](const double&, double&) {});
    const auto gemm = both("gemm", [](const double&, const double&, double&) {});
    std::vector<std::vector<double>> values(kTiles, std::vector<double>(kTiles));
    std::vector<std::vector<Data<double>>> a(kTiles);
    for (unsigned i = 0; i < kTiles; ++i)
      for (unsigned j = 0; j <= i; ++j) a[i].push_back(rt->data("a", values[i][j]));
    state.ResumeTiming();
    const auto urgency = [](unsigned k, unsigned i, unsigned j) { return static_cast<int>(3 * kTiles - k - i - j); };
    for (unsigned k = 0; k < kTiles; ++k) {
      rt->submit({.priority = urgency(k, k, k)}, potrf, read_write(a[k][k]));
      for (unsigned i = k + 1; i < kTiles; ++i)
        rt->submit({.priority = urgency(k, i, k)}, trsm, read(a[k][k]), read_write(a[i][k]));
      for (unsigned i = k + 1; i < kTiles; ++i)
        for (unsigned j = k + 1; j <= i; ++j)
          rt->submit({.priority = urgency(k, i, j)}, gemm, read(a[i][k]), read(a[j][k]), read_write(a[i][j]));
    }
    rt->wait();
    state.PauseTiming();
    for (const auto& worker : rt->statistics().workers) tasks += worker.tasks;
    rt.reset();
    state.ResumeTiming();
  }
  const std::chrono::duration<double> decisions = thoughts.time - thoughts.count * Thoughts::of_clock();
  state.counters["decision"] = decisions.count() / static_cast<double>(tasks);
  state.counters["per_task"] =
      benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

/// Tasks on data of as many different sizes as `state` says, all ready at once. The time for a task grows by less than
/// the number of sizes, since many sizes share a kind.
void shapes(benchmark::State& state, const std::string& sched) {
  constexpr unsigned kTasks = 40'000;
  const auto count = static_cast<unsigned>(state.range(0));
  for (auto _ : state) {
    state.PauseTiming();
    auto resources = test::test_resources();
    runtime::World world = make_test_world({.workers = kCores,
                                            .sched = sched,
                                            .devices = kCards,
                                            .link = runtime::MachineLink{.bytes_per_ns = 1, .latency_ns = 100}},
                                           *resources);
    world.estimates = std::make_unique<Known>();
    runtime::CoreOptions options;
    options.emulation = [](const runtime::EmulatedTask& task) { return Known::ns(task.codelet, task.device); };
    auto rt = std::make_unique<Runtime>(std::move(resources), std::move(world), options);
    const auto kernel = [](std::span<char>) {};
    const auto gemm = Codelet("gemm", kernel).also(DeviceKind::user, kernel);
    constexpr unsigned kData = 4'000;
    std::vector<std::vector<char>> values;
    std::vector<Data<Vector<char>>> data;
    for (unsigned i = 0; i < kData; ++i) values.emplace_back(1 + i % count);
    for (std::vector<char>& one : values) data.push_back(rt->data("v", one));
    state.ResumeTiming();
    for (unsigned i = 0; i < kTasks; ++i) rt->submit(gemm, read_write(data[i % kData]));
    rt->wait();
    state.PauseTiming();
    rt.reset();
    state.ResumeTiming();
  }
  state.counters["per_task"] = benchmark::Counter(kTasks * static_cast<double>(state.iterations()),
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(shapes, plan, "plan")->Arg(1)->Arg(64)->Arg(1'000)->Arg(4'000);
BENCHMARK_CAPTURE(shapes, heteroprio, "heteroprio")->Arg(1)->Arg(4'000);
BENCHMARK_CAPTURE(cholesky, lws, "lws");
BENCHMARK_CAPTURE(cholesky, dm, "dm");
BENCHMARK_CAPTURE(cholesky, dmda, "dmda");
BENCHMARK_CAPTURE(cholesky, dmdas, "dmdas");
BENCHMARK_CAPTURE(cholesky, dmdar, "dmdar");
BENCHMARK_CAPTURE(cholesky, heteroprio, "heteroprio");
BENCHMARK_CAPTURE(cholesky, darts, "darts");
BENCHMARK_CAPTURE(cholesky, plan, "plan");
BENCHMARK_CAPTURE(cholesky, darts_small_memory, "darts", 40U);
BENCHMARK_CAPTURE(cholesky, plan_small_memory, "plan", 40U);

}  // namespace
}  // namespace tandem
