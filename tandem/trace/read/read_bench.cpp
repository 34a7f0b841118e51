// tandem/trace/read/read_bench.cpp: the rate of reading events, of one stream, and of eight that are merged by time.
#include <benchmark/benchmark.h>

#include "tandem/trace/read/reader.hpp"
#include "tandem/trace/read/test_support.hpp"

namespace tandem::trace {
namespace {

constexpr int packets = 64;
constexpr int events_per_packet = 8'000;

/// Tasks that start and end, of fixed size: 8 bytes each.
void write_worker(const std::filesystem::path& file, std::uint32_t actor, std::uint64_t offset) {
  std::string bytes;
  std::uint64_t ticks = 2'000'000 + offset;
  for (int i = 0; i < packets; ++i) {
    test::PacketWriter packet(actor, i, ticks);
    for (int event = 0; event < events_per_packet; event += 2) {
      packet.add(Type::task_started, ticks, {event});
      packet.add(Type::task_ended, ticks + 700, {event});
      ticks += 1'000;
    }
    bytes += packet.bytes();
  }
  test::write_file(file, bytes);
}

void next_of_one_stream(benchmark::State& state) {
  const test::TempFolder folder;
  const auto file = folder.path() / "stream_0001";
  write_worker(file, 1, 0);
  const auto reader = StreamReader::open(file, 0, test::RankFacts{}.scale());
  std::uint64_t sum = 0;
  for (auto _ : state) {
    reader.value()->rewind();
    for (;;) {
      const auto event = reader.value()->next();
      if (!event.value()) break;
      sum += static_cast<std::uint64_t>(event.value()->local_ns) + event.value()->number(0);
    }
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * packets * events_per_packet);
}
BENCHMARK(next_of_one_stream)->Unit(benchmark::kMillisecond);

void in_order_of_eight_streams(benchmark::State& state) {
  const test::TempFolder folder;
  test::write_rank(folder.path(), {});
  for (std::uint32_t actor = 1; actor <= 8; ++actor)
    write_worker(test::stream_path(folder.path(), actor), actor, 97 * actor);
  const auto trace = TraceReader::open(folder.path());
  std::uint64_t sum = 0;
  for (auto _ : state) {
    (void)trace.value()->in_order([](const Event& event) { return event.local_ns; }, [&](const Event& event,
                                                                                         std::int64_t) {
      sum += event.number(0);
      return true;
    });
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * 8 * packets * events_per_packet);
}
BENCHMARK(in_order_of_eight_streams)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tandem::trace
