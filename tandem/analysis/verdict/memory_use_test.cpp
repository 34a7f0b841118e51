// tandem/analysis/verdict/memory_use_test.cpp: peaks and means of memory, by hand and by brute force.
#include "tandem/analysis/verdict/memory_use.hpp"

#include <algorithm>
#include <random>

#include "tandem/analysis/history/small_run.hpp"

namespace tandem::analysis::memory_use_test {
namespace {

using test::at;
using test::SmallRun;
using trace::Type;

TEST(MemoryUse, EachNodeHasItsPeak) {
  SmallRun run(2);
  run.usual(0).usual(1);
  run.stream(0, 1).add(Type::data_allocated, at(0), {0, 0, 100}).add(Type::data_allocated, at(100), {1, 0, 200});
  run.stream(0, 1).add(Type::data_allocated, at(100), {1, 1, 50}).add(Type::data_freed, at(200), {1, 0, 200});
  run.stream(0, 1).add(Type::data_freed, at(400), {0, 0, 100});
  run.stream(1, 1).add(Type::data_freed, at(300), {0, 0, 70}).add(Type::data_allocated, at(400), {1, 0, 90});
  const auto result = memory_use(*run.read());
  ASSERT_EQ(result.size(), 3u);
  EXPECT_EQ(result[0].peak_bytes, 300);
  EXPECT_EQ(result[0].peak_at_ns, 100);
  EXPECT_DOUBLE_EQ(result[0].mean_bytes, (100 * 100 + 100 * 300 + 200 * 100) / 400.0);
  EXPECT_EQ(result[0].last_bytes, 0);
  EXPECT_EQ(result[0].allocations, 2u);
  EXPECT_EQ(result[1].node, 1);
  EXPECT_EQ(result[1].peak_bytes, 50);
  EXPECT_EQ(result[1].last_bytes, 50);
  // What was freed had been allocated before the trace began.
  EXPECT_EQ(result[2].rank, 1u);
  EXPECT_EQ(result[2].peak_bytes, 90);
  EXPECT_EQ(result[2].peak_at_ns, 400);
  EXPECT_DOUBLE_EQ(result[2].mean_bytes, 70 * 300 / 400.0);
}

TEST(MemoryUse, NothingWasRecorded) {
  SmallRun run;
  run.usual().submit(0, 0, 1, 0);
  EXPECT_TRUE(memory_use(*run.read()).empty());
}

TEST(MemoryUse, RandomRunsAgreeWithBruteForce) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    SmallRun run;
    run.usual();
    struct Event {
      std::int64_t at_ns = 0, bytes = 0;
      std::uint16_t node = 0;
    };
    std::vector<Event> events;
    std::int64_t at_ns = 0;
    for (int i = 0; i < 40; ++i) {
      const auto bytes = static_cast<std::int64_t>(1 + random() % 100);
      const Event& event = events.emplace_back(
          Event{at_ns, random() % 2 == 0 ? bytes : -bytes, static_cast<std::uint16_t>(random() % 2)});
      run.stream(0, 1).add(event.bytes > 0 ? Type::data_allocated : Type::data_freed, at(at_ns),
                           {0, event.node, static_cast<std::uint64_t>(bytes)});
      at_ns += 2 * static_cast<std::int64_t>(random() % 20);
    }
    const auto history = run.read();
    const auto result = memory_use(*history);
    ASSERT_EQ(history->duration_ns, events.back().at_ns);
    for (const NodeMemory& memory : result) {
      std::int64_t used = 0, lowest = 0;
      for (const Event& event : events)
        if (event.node == memory.node) lowest = std::min(lowest, used += event.bytes);
      std::int64_t peak = 0;
      double sum = 0;
      for (std::int64_t ns = 0; ns <= history->duration_ns; ++ns) {
        used = -lowest;
        for (const Event& event : events)
          if (event.node == memory.node && event.at_ns <= ns) used += event.bytes;
        EXPECT_GE(used, 0);
        peak = std::max(peak, used);
        if (ns < history->duration_ns) sum += static_cast<double>(used);
      }
      EXPECT_EQ(memory.peak_bytes, peak) << "seed " << seed;
      EXPECT_EQ(memory.last_bytes, used) << "seed " << seed;
      EXPECT_NEAR(memory.mean_bytes * static_cast<double>(history->duration_ns), sum, 1e-6) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tandem::analysis::memory_use_test
