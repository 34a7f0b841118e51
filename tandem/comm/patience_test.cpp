// tandem/comm/patience_test.cpp: how long waiting threads poll, with a clock that the tests set.
#include "tandem/comm/patience.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace tandem::comm::internal::patience_test {
namespace {

/// One waiter; each poll and each yield takes the time that the test sets.
struct World {
  Patience& patience;
  std::int64_t poll_ns = 50;
  std::int64_t yield_ns = 300;
  std::int64_t now_ns = 1'000'000'000;
  Polling polling{patience, now_ns};

  Polling::Next poll(bool found) {
    now_ns += poll_ns;
    return polling.polled(found, [this] { return now_ns; });
  }
  /// Polls in vain until it is time to sleep. Returns how long that took.
  std::int64_t wait_in_vain() {
    const std::int64_t began_ns = now_ns;
    for (;;) {
      const Polling::Next next = poll(false);
      if (next == Polling::Next::sleep) return now_ns - began_ns;
      if (next != Polling::Next::yield) continue;
      now_ns += yield_ns;
      polling.yielded(now_ns);
    }
  }
  void sleep(std::int64_t took_ns, bool found = true) {
    now_ns += took_ns;
    polling.slept(now_ns, found);
  }
  void learn_that_waits_take(std::int64_t took_ns) {
    for (int i = 0; i < 10; ++i) {
      wait_in_vain();
      sleep(took_ns);
    }
  }
};

TEST(Patience, PollsForItsBudgetBeforeSleeping) {
  Patience patience(20'000);
  World world{patience};
  const std::int64_t waited_ns = world.wait_in_vain();
  EXPECT_GE(waited_ns, 20'000);
  EXPECT_LE(waited_ns, 40'000);
}

TEST(Patience, LongWaitsMakeItSleepSoonAndShortOnesMakeItPollAgain) {
  Patience patience(20'000);
  World world{patience};
  world.learn_that_waits_take(1'000'000);
  EXPECT_EQ(patience.budget_ns(world.now_ns), Patience::kLeastNs);
  world.learn_that_waits_take(10'000);
  EXPECT_EQ(patience.budget_ns(world.now_ns), 20'000);
}

TEST(Patience, ASleepThatNothingEndedCountsAsLong) {
  Patience patience(20'000);
  World world{patience};
  world.wait_in_vain();
  world.sleep(10'000, false);
  EXPECT_EQ(patience.budget_ns(world.now_ns), 10'000);
}

TEST(Patience, SlowPollsAreFollowedByMoreLooksUnlessTheyFoundSomething) {
  for (const bool found : {false, true}) {
    Patience patience(20'000);
    World world{patience, 3000};
    for (unsigned i = 0; i < Patience::kMostPolls - 1; ++i) world.poll(i % 8 == 0 && found);
    world.poll(false);
    EXPECT_EQ(patience.polls_per_look(world.now_ns), found ? Patience::kMostPolls : Patience::kMostPolls / 2);
  }
}

TEST(Patience, WhatComesWhilePollingKeepsItPolling) {
  Patience patience(20'000);
  World world{patience};
  world.wait_in_vain();
  world.sleep(1'000'000);
  ASSERT_EQ(patience.budget_ns(world.now_ns), 10'000);
  while (world.poll(false) != Polling::Next::yield) {}  // it has read the clock, and waits
  world.poll(true);
  EXPECT_EQ(patience.budget_ns(world.now_ns), 20'000);
}

TEST(Patience, TwoSlowYieldsAreACrowdWhereNobodyPolls) {
  Patience patience(20'000);
  World world{patience};
  world.yield_ns = 1'000'000;
  world.wait_in_vain();
  EXPECT_GT(patience.budget_ns(world.now_ns), 0);
  world.sleep(100'000);
  world.wait_in_vain();
  EXPECT_EQ(patience.budget_ns(world.now_ns), 0);
  world.sleep(1'000);
  EXPECT_EQ(world.wait_in_vain(), world.poll_ns);  // one poll, no yield
  EXPECT_GT(patience.budget_ns(world.now_ns + Patience::kShortestCrowdNs), 0);
}

TEST(Patience, ACrowdThatStaysIsBelievedForLonger) {
  Patience patience(20'000);
  World world{patience};
  world.yield_ns = 1'000'000;
  std::int64_t longest_ns = 0;
  for (int i = 0; i < 40; ++i) {
    world.wait_in_vain();
    const std::int64_t began_ns = world.now_ns;
    do world.sleep(100'000);
    while (patience.budget_ns(world.now_ns) == 0);
    longest_ns = std::max(longest_ns, world.now_ns - began_ns);
  }
  EXPECT_GE(longest_ns, Patience::kLongestCrowdNs / 2);
  EXPECT_LE(longest_ns, Patience::kLongestCrowdNs + 1'000'000);
}

TEST(Patience, OneSlowYieldIsNoCrowd) {
  Patience patience(20'000);
  World world{patience};
  int yields = 0;
  for (Polling::Next next = Polling::Next::poll; next != Polling::Next::sleep;) {
    next = world.poll(false);
    if (next != Polling::Next::yield) continue;
    world.now_ns += ++yields % 2 == 1 ? 4'500 : 300;
    world.polling.yielded(world.now_ns);
  }
  EXPECT_GT(yields, 1);
  EXPECT_GT(patience.budget_ns(world.now_ns), 0);
}

TEST(Patience, WhatIsExpectedIsPolledForUntilItIsLate) {
  Patience patience(20'000);
  World world{patience};
  world.learn_that_waits_take(1'000'000);
  patience.expect(world.now_ns + 300'000);
  const std::int64_t waited_ns = world.wait_in_vain();
  EXPECT_GE(waited_ns, 300'000);
  EXPECT_LE(waited_ns, 320'000);
  EXPECT_EQ(patience.budget_ns(world.now_ns), Patience::kLeastNs) << "what was learnt stays";

  patience.expect(world.now_ns + 300'000);
  patience.expect(world.now_ns);  // withdrawn
  EXPECT_LE(world.wait_in_vain(), 20'000);
}

TEST(Patience, ACrowdIsNotKeptWaitingForWhatIsExpected) {
  Patience patience(20'000);
  World world{patience};
  world.yield_ns = 10'000;
  patience.expect(world.now_ns + 300'000);
  EXPECT_LT(world.wait_in_vain(), 100'000);
  EXPECT_EQ(patience.budget_ns(world.now_ns), 0);
}

TEST(Patience, WithoutABudgetNobodyPollsInVain) {
  Patience patience(0);
  World world{patience};
  EXPECT_EQ(world.poll(false), Polling::Next::sleep);
  world.sleep(1'000);
  // Not after an event either: the waiter checks whether that was it, and sleeps.
  EXPECT_EQ(world.poll(true), Polling::Next::sleep);
}

TEST(Patience, CostlyPollsAreCountedInSmallerPortions) {
  Patience patience(20'000);
  World world{patience, 1'000};
  world.wait_in_vain();
  world.sleep(10'000);
  world.wait_in_vain();
  EXPECT_LE(patience.polls_per_look(world.now_ns), 8u);
  world.poll_ns = 10;
  for (int i = 0; i < 10; ++i) {
    world.sleep(10'000);
    world.wait_in_vain();
  }
  EXPECT_EQ(patience.polls_per_look(world.now_ns), Patience::kMostPolls);
}

}  // namespace
}  // namespace tandem::comm::internal::patience_test
