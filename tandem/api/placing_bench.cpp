// tandem/api/placing_bench.cpp: what a decision costs with each policy, on 14 cores and two cards that are modelled.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tandem/api/test_support.hpp"
#include "tandem/base/event_loop.hpp"

namespace tandem {
namespace {

constexpr unsigned kCores = 14;
constexpr unsigned kCards = 2;
constexpr unsigned kTiles = 24;

/// As if earlier runs had measured them.
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

/// A Cholesky factorisation whose kernels take modelled time, so what is measured is the runtime's own. With `lws` tasks wait in queues
/// that workers share, and nothing is decided: what others take more is what their decisions cost.
void cholesky(benchmark::State& state, const std::string& sched) {
  std::uint64_t tasks = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto resources = test::test_resources();
    runtime::World world = make_test_world(
        {.workers = kCores, .sched = sched, .devices = kCards, .link = runtime::MachineLink{.bytes_per_ns = 1, .latency_ns = 100}}, *resources);
    world.estimates = std::make_unique<Known>();
    runtime::CoreOptions options;
    options.emulation = [](const runtime::EmulatedTask& task) { return Known::ns(task.codelet, task.device); };
    auto rt = std::make_unique<Runtime>(std::move(resources), std::move(world), options);
    const auto both = [](const char* name, auto kernel) { return Codelet(name, kernel).also(DeviceKind::user, kernel); };
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
      for (unsigned i = k + 1; i < kTiles; ++i) rt->submit({.priority = urgency(k, i, k)}, trsm, read(a[k][k]), read_write(a[i][k]));
      for (unsigned i = k + 1; i < kTiles; ++i)
        for (unsigned j = k + 1; j <= i; ++j) rt->submit({.priority = urgency(k, i, j)}, gemm, read(a[i][k]), read(a[j][k]), read_write(a[i][j]));
    }
    rt->wait();
    state.PauseTiming();
    for (const auto& worker : rt->statistics().workers) tasks += worker.tasks;
    rt.reset();
    state.ResumeTiming();
  }
  state.counters["per_task"] = benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(cholesky, lws, "lws");
BENCHMARK_CAPTURE(cholesky, dm, "dm");
BENCHMARK_CAPTURE(cholesky, dmda, "dmda");
BENCHMARK_CAPTURE(cholesky, dmdas, "dmdas");
BENCHMARK_CAPTURE(cholesky, dmdar, "dmdar");
BENCHMARK_CAPTURE(cholesky, heteroprio, "heteroprio");
BENCHMARK_CAPTURE(cholesky, darts, "darts");
BENCHMARK_CAPTURE(cholesky, plan, "plan");

}  // namespace
}  // namespace tandem
