// tandem/runtime/sched/queues/sums_by_priority_test.cpp: compares it with the sum over a map, and checks the depth of a
// call with many priorities.
#include "tandem/runtime/sched/queues/sums_by_priority.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::runtime::sums_by_priority_test {
namespace {

using Sum = SumsByPriority::Sum;

TEST(SumsByPriority, AreThoseOfAllTasksFromAPriorityOn) {
  std::mt19937 random(11);
  for (const unsigned range : {1U, 5U, 40U, 5'000U}) {
    SumsByPriority sums;
    std::vector<std::pair<std::int32_t, std::int64_t>> tasks;
    Sum all;
    for (int i = 0; i < 4'000; ++i) {
      const bool grows = i / 1'000 % 2 == 0;
      if (tasks.empty() || random() % 10 < (grows ? 8 : 2)) {
        tasks.emplace_back(static_cast<std::int32_t>(random() % range) - 3, random() % 1'000);
        sums.add(tasks.back().first, tasks.back().second);
        all += Sum{tasks.back().second, 1};
      } else {
        std::swap(tasks[random() % tasks.size()], tasks.back());
        sums.remove(tasks.back().first, tasks.back().second);
        all -= Sum{tasks.back().second, 1};
        tasks.pop_back();
      }
      if (i % 16 != 0) continue;
      ASSERT_TRUE(sums.check_invariants(all)) << i;
      const auto priority = static_cast<std::int32_t>(random() % (range + 8)) - 6;
      Sum expected;
      for (const auto& [known, ns] : tasks)
        if (known >= priority) expected += Sum{ns, 1};
      ASSERT_EQ(sums.from(priority), expected) << "from " << priority << " of " << range;
    }
    while (!tasks.empty()) {
      sums.remove(tasks.back().first, tasks.back().second);
      tasks.pop_back();
    }
    EXPECT_TRUE(sums.check_invariants({}));
    EXPECT_EQ(sums.size(), 0U);
  }
}

TEST(SumsByPriority, ExtremePrioritiesAreOrdinary) {
  SumsByPriority sums;
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min(),
                         kMost = std::numeric_limits<std::int32_t>::max();
  for (std::int32_t i = 0; i < 100; ++i) sums.add(i, 1);
  sums.add(kLeast, 10);
  sums.add(kMost, 20);
  EXPECT_EQ(sums.from(kMost), (Sum{20, 1}));
  EXPECT_EQ(sums.from(0), (Sum{120, 101}));
  EXPECT_EQ(sums.from(kLeast), (Sum{130, 102}));
}

TEST(SumsByPriority, ManyPrioritiesCostTheLogarithmOfTheirNumber) {
  std::mt19937 random(13);
  for (const bool is_shuffled : {false, true})
    for (const int count : {1'000, 64'000}) {
      std::vector<std::int32_t> priorities;
      for (int i = 0; i < count; ++i) priorities.push_back(i);
      if (is_shuffled) std::shuffle(priorities.begin(), priorities.end(), random);
      SumsByPriority sums;
      for (const std::int32_t priority : priorities) sums.add(priority, 1);
      EXPECT_EQ(sums.size(), priorities.size());
      EXPECT_LT(static_cast<double>(sums.height()), 4 * std::log2(count)) << count;
    }
}

TEST(SumsByPriority, FewPrioritiesStandInAnArrayHoweverManyTheyWere) {
  SumsByPriority sums;
  for (std::int32_t i = 0; i < 1'000; ++i) sums.add(i, i);
  EXPECT_GT(sums.height(), 0U);
  for (std::int32_t i = 999; i >= 10; --i) sums.remove(i, i);
  EXPECT_EQ(sums.height(), 0U);
  EXPECT_EQ(sums.from(5), (Sum{5 + 6 + 7 + 8 + 9, 5}));
}

}  // namespace
}  // namespace tandem::runtime::sums_by_priority_test
