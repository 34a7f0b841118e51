// tandem/comm/schedule/schedule_bench.cpp: what one item costs from push to commit, with n pending.
#include <benchmark/benchmark.h>

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "tandem/comm/schedule/strategy.hpp"

namespace tandem::comm {
namespace {

/// An item as large as an engine's request.
struct Item : SendItem {
  std::uint64_t rest[16] = {};
};

enum class Priorities : std::size_t { equal = 1, two = 2, many = 1000 };

RailView first_of(std::span<const RailState> rails) {
  return {
      .rail = 0, .rails = rails, .max_control_bytes = 4096, .max_payload_bytes = 1 << 20, .segment_bytes = 64 << 10};
}

/// Pushes n small ordered messages of different tags, then plans and commits until none is left.
void drain(benchmark::State& state, std::string_view name, Priorities priorities) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const auto strategy = std::move(make_strategy(name).value());
  SendQueue queue(strategy->order());
  std::vector<Item> items(count);
  for (std::size_t i = 0; i < count; ++i) {
    items[i].tag = i;
    items[i].ordered = true;
    items[i].control_bytes = 32;
    items[i].priority = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(priorities));
  }
  const std::array<RailState, 1> rails{RailState{.bytes_per_ns = 10, .latency_ns = 1000}};
  const RailView view = first_of(rails);
  PacketPlan plan;
  for (auto _ : state) {
    for (Item& item : items) queue.push(item);
    while (!queue.idle()) {
      strategy->plan(queue, view, plan);
      queue.commit(plan);
    }
  }
  state.counters["ns_per_item"] = benchmark::Counter(1e-9 * static_cast<double>(count),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// Plans segments of n streams of one priority.
void segments(benchmark::State& state, std::string_view name, std::size_t rail_count) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const auto strategy = std::move(make_strategy(name).value());
  SendQueue queue(strategy->order());
  std::vector<Item> items(count);
  for (Item& item : items) {
    item.kind = SendKind::stream;
    item.control_bytes = 24;
    item.bulk_bytes = std::uint64_t{1} << 60;
    queue.push(item);
  }
  const std::vector<RailState> rails(rail_count, RailState{.bytes_per_ns = 10, .latency_ns = 1000});
  const RailView view = first_of(rails);
  PacketPlan plan;
  for (auto _ : state) {
    strategy->plan(queue, view, plan);
    queue.commit(plan);
  }
}

void counts(benchmark::internal::Benchmark* bench) {
  for (const int count : {1, 100, 1000, 10'000, 100'000}) bench->Arg(count);
  bench->MinTime(0.1);
}

BENCHMARK_CAPTURE(drain, fifo, "fifo", Priorities::equal)->Apply(counts);
BENCHMARK_CAPTURE(drain, aggregate, "aggregate", Priorities::equal)->Apply(counts);
BENCHMARK_CAPTURE(drain, priority_all_equal, "priority", Priorities::equal)->Apply(counts);
BENCHMARK_CAPTURE(drain, priority_of_two, "priority", Priorities::two)->Apply(counts);
BENCHMARK_CAPTURE(drain, priority_of_a_thousand, "priority", Priorities::many)->Apply(counts);
BENCHMARK_CAPTURE(segments, one_rail, "priority", 1)->Arg(1)->Arg(1000)->MinTime(0.1);
BENCHMARK_CAPTURE(segments, two_rails, "split", 2)->Arg(1)->Arg(1000)->MinTime(0.1);

}  // namespace
}  // namespace tandem::comm
