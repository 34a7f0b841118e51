// tandem/base/turnstile_test.cpp: which visitors get in, which wait, and which is next. Every order of steps:
// tests/interleave.
#include "tandem/base/turnstile.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::base::turnstile_test {
namespace {

struct Visitor {
  struct Place {
    Visitor* child = nullptr;
    std::uint64_t number = 0;
  };

  Visitor* next = nullptr;
  int priority = 0;
  Place place = {};

  Place& place_at_turnstile() { return place; }
};
bool better(const Visitor& a, const Visitor& b) { return a.priority > b.priority; }

TEST(Turnstile, TheFirstGetsInAndTheOthersFollowInOrderOfArrival) {
  Turnstile<Visitor> turnstile;
  Visitor a;
  Visitor b;
  Visitor c;
  EXPECT_TRUE(turnstile.free());
  EXPECT_TRUE(turnstile.enter(&a));
  EXPECT_FALSE(turnstile.enter(&b));
  EXPECT_FALSE(turnstile.enter(&c));
  EXPECT_FALSE(turnstile.free());
  EXPECT_EQ(turnstile.leave(better), &b);
  EXPECT_EQ(turnstile.leave(better), &c);
  EXPECT_EQ(turnstile.leave(better), nullptr);
  EXPECT_TRUE(turnstile.free());
}

TEST(Turnstile, TheBetterOneIsNextAndTheEarliestAmongEquals) {
  Turnstile<Visitor> turnstile;
  Visitor inside;
  std::vector<Visitor> visitors(5);
  const int priorities[] = {0, 2, 1, 2, 0};
  ASSERT_TRUE(turnstile.enter(&inside));
  for (std::size_t i = 0; i < visitors.size(); ++i) {
    visitors[i].priority = priorities[i];
    ASSERT_FALSE(turnstile.enter(&visitors[i]));
  }
  EXPECT_EQ(turnstile.leave(better), &visitors[1]);
  Visitor urgent{nullptr, 3};
  ASSERT_FALSE(turnstile.enter(&urgent));
  EXPECT_EQ(turnstile.leave(better), &urgent);
  for (const std::size_t next : {3U, 2U, 0U, 4U}) EXPECT_EQ(turnstile.leave(better), &visitors[next]);
  EXPECT_EQ(turnstile.leave(better), nullptr);
}

/// Visitors of a few priorities, of which many wait while others come and go, leave in the order of a sorted list.
TEST(Turnstile, WhoWaitsLongLeavesInTheSameOrderAsFromASortedList) {
  constexpr std::size_t kVisitors = 600;
  Turnstile<Visitor> turnstile;
  std::vector<Visitor> visitors(kVisitors);
  std::vector<Visitor*> expected;  // those that wait, in order
  std::size_t arrived = 0;
  std::uint32_t random = 7;
  const auto arrive = [&] {
    Visitor& visitor = visitors[arrived++];
    random = random * 1'664'525 + 1'013'904'223;
    visitor.priority = static_cast<int>(random >> 28);
    if (turnstile.enter(&visitor)) return;
    const auto at = std::upper_bound(expected.begin(), expected.end(), &visitor,
                                     [](const Visitor* a, const Visitor* b) { return better(*a, *b); });
    expected.insert(at, &visitor);
  };
  for (int i = 0; i < 200; ++i) arrive();
  while (!expected.empty()) {
    ASSERT_EQ(turnstile.leave(better), expected.front());
    expected.erase(expected.begin());
    for (int i = 0; i < 2 && arrived < kVisitors && (random >> 20 & 1) != 0; ++i) arrive();
    random = random * 1'664'525 + 1'013'904'223;
  }
  EXPECT_EQ(turnstile.leave(better), nullptr);
}

/// Comparisons per visitor until all of `count` visitors that came while one was inside have left.
double comparisons_of_each(std::size_t count, int priorities) {
  Turnstile<Visitor> turnstile;
  std::vector<Visitor> visitors(count);
  std::uint64_t comparisons = 0;
  const auto counted = [&](const Visitor& a, const Visitor& b) {
    ++comparisons;
    return better(a, b);
  };
  std::uint32_t random = 1;
  for (Visitor& visitor : visitors) {
    random = random * 1'664'525 + 1'013'904'223;
    visitor.priority = static_cast<int>(random >> 8) % priorities;
    turnstile.enter(&visitor);
  }
  std::size_t left = 1;
  while (turnstile.leave(counted) != nullptr) ++left;
  EXPECT_EQ(left, count);
  return static_cast<double>(comparisons) / static_cast<double>(count);
}

TEST(Turnstile, AVisitorCostsAsManyComparisonsAsTheLogarithmOfThoseThatWait) {
  for (const std::size_t count : {1'000U, 64'000U})
    for (const int priorities : {1, 3, 1'000'000})
      EXPECT_LT(comparisons_of_each(count, priorities), 2.0 * static_cast<double>(std::bit_width(count)))
          << count << " visitors of " << priorities << " priorities";
}

TEST(Turnstile, OneAtATimePassesAndEverybodyDoes) {
  constexpr int kThreads = 4;
  constexpr int kEach = 3000;
  Turnstile<Visitor> turnstile;
  int passed = 0;  // guarded by the turnstile
  std::vector<std::vector<Visitor>> visitors(kThreads, std::vector<Visitor>(kEach));
  std::vector<std::thread> threads;
  for (auto& own : visitors)
    threads.emplace_back([&turnstile, &passed, &own] {
      for (Visitor& visitor : own) {
        visitor.priority = static_cast<int>(&visitor - own.data()) % 3;
        Visitor* inside = turnstile.enter(&visitor) ? &visitor : nullptr;
        while (inside != nullptr) {
          ++passed;
          inside = turnstile.leave(better);
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(passed, kThreads * kEach);
  EXPECT_TRUE(turnstile.free());
}

}  // namespace
}  // namespace tandem::base::turnstile_test
