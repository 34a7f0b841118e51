// tandem/clock/clock_bench.cpp: the cost of reading each clock.
#include <benchmark/benchmark.h>

#include "tandem/clock/clock.hpp"
#include "tandem/clock/tsc_clock.hpp"

namespace tandem::clock {
namespace {

void read_tsc_ticks(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(TscClock::ticks());
}
BENCHMARK(read_tsc_ticks);

void read_tsc_clock(benchmark::State& state) {
  const auto clock = TscClock::calibrate();
  if (!clock) {
    state.SkipWithError(clock.error().message.c_str());
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(clock.value().now_ns());
}
BENCHMARK(read_tsc_clock);

void read_raw_monotonic_clock(benchmark::State& state) {
  const RawMonotonicClock clock;
  for (auto _ : state) benchmark::DoNotOptimize(clock.now_ns());
}
BENCHMARK(read_raw_monotonic_clock);

}  // namespace
}  // namespace tandem::clock
