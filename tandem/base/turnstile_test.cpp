// tandem/base/turnstile_test.cpp: who gets in, who waits, who is next. Every order of steps: tests/interleave.
#include "tandem/base/turnstile.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::base {
namespace {

struct Visitor {
  Visitor* next = nullptr;
  int priority = 0;
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
}  // namespace tandem::base
