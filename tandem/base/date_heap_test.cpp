// tandem/base/date_heap_test.cpp: beside a sorted set.
#include "tandem/base/date_heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tandem/base/splitmix64.hpp"

namespace tandem::base::date_heap_test {
namespace {

TEST(DateHeap, HasTheEarliestFirst) {
  constexpr std::size_t count = 60;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::uint64_t state = seed;
    DateHeap heap;
    heap.reserve(count);
    std::vector<std::int64_t> dates(count, -1);
    std::set<std::pair<std::int64_t, std::size_t>> sorted;
    for (int step = 0; step < 1'000; ++step) {
      const std::size_t number = splitmix64(state) % count;
      sorted.erase({dates[number], number});
      if (splitmix64(state) % 3 == 0) {
        heap.remove(number);
        dates[number] = -1;
      } else {
        dates[number] = static_cast<std::int64_t>(splitmix64(state) % 100);
        heap.set(number, dates[number]);
        sorted.emplace(dates[number], number);
      }
      ASSERT_EQ(heap.empty(), sorted.empty());
      if (sorted.empty()) continue;
      ASSERT_EQ(heap.front().date_ns, sorted.begin()->first);
      ASSERT_EQ(heap.front().date_ns, dates[heap.front().number]);
      const std::size_t without = heap.front().number;
      std::int64_t next = 1'000;
      for (const auto& [date, other] : sorted)
        if (other != without) next = std::min(next, date);
      ASSERT_EQ(heap.earliest_without(without, 1'000), next);
    }
    while (!heap.empty()) {
      ASSERT_EQ(heap.front().date_ns, sorted.begin()->first);
      sorted.erase({heap.front().date_ns, heap.front().number});
      heap.remove(heap.front().number);
    }
    EXPECT_TRUE(sorted.empty());
  }
}

}  // namespace
}  // namespace tandem::base::date_heap_test
