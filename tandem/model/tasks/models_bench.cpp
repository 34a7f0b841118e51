// tandem/model/tasks/models_bench.cpp: the cost of adding a duration and of an estimate.
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "tandem/model/tasks/linear_model.hpp"
#include "tandem/model/tasks/random_durations.hpp"
#include "tandem/model/tasks/size_model.hpp"

namespace tandem::model {
namespace {

std::vector<double> durations() {
  RandomDurations random(1);
  std::vector<double> result(4096);
  for (double& ns : result) ns = random.around(1e6, 0.05);
  return result;
}

SizeModel learnt() {
  SizeModel model;
  std::size_t next = 0;
  const std::vector<double> ns = durations();
  for (std::uint64_t bytes = 1024; bytes < 1024 << 8; bytes *= 2)
    for (int i = 0; i < 40; ++i) model.add(bytes, ns[next++] * static_cast<double>(bytes) / 1e5);
  return model;
}

void add_to_history(benchmark::State& state) {
  const std::vector<double> ns = durations();
  History history;
  std::size_t next = 0;
  for (auto _ : state) history.add(ns[next++ % ns.size()]);
}
BENCHMARK(add_to_history);

void estimate_by_history(benchmark::State& state) {
  const std::vector<double> ns = durations();
  History history;
  for (int i = 0; i < 100; ++i) history.add(ns[i]);
  for (auto _ : state) benchmark::DoNotOptimize(history.estimate());
}
BENCHMARK(estimate_by_history);

void add_to_one_of_eight_sizes(benchmark::State& state) {
  SizeModel model = learnt();
  const std::vector<double> ns = durations();
  std::size_t next = 0;
  for (auto _ : state) model.add(1024U << (next % 8), ns[next % ns.size()]), ++next;
}
BENCHMARK(add_to_one_of_eight_sizes);

void estimate_one_of_eight_sizes(benchmark::State& state) {
  SizeModel model = learnt();
  std::size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(model.estimate(1024U << (next++ % 8)));
}
BENCHMARK(estimate_one_of_eight_sizes);

void estimate_another_size(benchmark::State& state) {
  SizeModel model = learnt();
  std::uint64_t bytes = 1500;
  for (auto _ : state) benchmark::DoNotOptimize(model.estimate(bytes ^= 1));
}
BENCHMARK(estimate_another_size);

void fit_a_law_to_eight_sizes(benchmark::State& state) {
  const SizeModel model = learnt();
  for (auto _ : state) benchmark::DoNotOptimize(model.law());
}
BENCHMARK(fit_a_law_to_eight_sizes);

void add_to_three_parameters(benchmark::State& state) {
  LinearModel model(LinearForm::product, 3);
  const std::vector<double> ns = durations();
  std::size_t next = 0;
  for (auto _ : state) {
    const double n = 100 + static_cast<double>(next % 7);
    model.add(std::array<double, 3>{n, 2 * n, 300 - n}, ns[next % ns.size()]);
    ++next;
  }
}
BENCHMARK(add_to_three_parameters);

}  // namespace
}  // namespace tandem::model
