// tandem/runtime/worker/duration_models_bench.cpp: measures the cost of learning for a worker, and of a question for a
// scheduler.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "tandem/runtime/task/codelet_core.hpp"
#include "tandem/runtime/worker/duration_models.hpp"

namespace tandem::runtime {
namespace {

DurationModels& models() {
  static DurationModels of_two_workers(std::vector<WorkerSpec>(2));
  return of_two_workers;
}

void learn(benchmark::State& state) {
  static const TaskOps ops;
  static CodeletCore codelet("gemm");
  Task task;
  task.ops = &ops;
  task.codelet = &codelet;
  DurationModels::Collector collector(models(), static_cast<unsigned>(state.thread_index()));
  std::int64_t now_ns = 0, step = 0;
  for (auto _ : state) {
    now_ns += 1000;
    collector.add(task, 0, 1000 + (step = (step * 5 + 3) % 64), now_ns);
  }
}
BENCHMARK(learn);
BENCHMARK(learn)->Threads(2);

void ask(benchmark::State& state) {
  static CodeletCore codelet("gemm");
  model::CodeletModels known{.codelet = "gemm", .kinds = {}};
  for (int i = 0; i < 40; ++i) known.kinds[{}].add(4096, 1000 + i);
  models().set(known);
  for (auto _ : state) benchmark::DoNotOptimize(models().expected_ns("gemm", 4096, DeviceKind::cpu));
}
BENCHMARK(ask);

}  // namespace
}  // namespace tandem::runtime
