// tandem/base/event_loop_test.cpp: the seed determines the order, the requested dates the time.
#include "tandem/base/event_loop.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem::base::event_loop_test {
namespace {

constexpr auto kNotYet = [](void*) { return false; };
constexpr auto kFlagSet = [](void* flag) { return *static_cast<bool*>(flag); };

/// Calls a function at each step.
template <class Function>
struct Stepping final : Steppable {
  explicit Stepping(Function f) : function(std::move(f)) {}
  std::int64_t step(std::int64_t now_ns) override { return function(now_ns); }
  Function function;
};

/// The events of a loop with this seed, three ticking steppables, and some actions.
std::string story(std::uint64_t seed, unsigned empty_slots = 0) {
  std::string order;
  EventLoop loop(seed);
  Stepping nobody([](std::int64_t now_ns) { return now_ns; });
  const auto leave_slots = [&] {
    for (unsigned i = 0; i < empty_slots; ++i) loop.add(nobody, {});
    loop.remove(nobody);
  };
  const auto tick = [&order](char name, std::int64_t every_ns) {
    return [&order, name, every_ns](std::int64_t now_ns) {
      order += name;
      return now_ns + every_ns;
    };
  };
  Stepping a(tick('a', 2));
  Stepping b(tick('b', 2));
  Stepping c(tick('c', 3));
  loop.add(a, {});
  leave_slots();
  loop.add(b, {});
  leave_slots();
  loop.add(c, {});
  leave_slots();
  for (int i = 0; i < 5; ++i) loop.at(i * 2, [&order] { order += '!'; });
  loop.run_until(kNotYet, nullptr, 100);
  return order;
}

TEST(EventLoop, TheSameSeedGivesTheSameOrder) {
  EXPECT_EQ(story(7), story(7));
  int differ = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) differ += story(seed) != story(seed + 1);
  EXPECT_GE(differ, 19);
}

TEST(EventLoop, ThoseThatAreNotDueChangeNothing) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(story(seed, 1), story(seed));
    EXPECT_EQ(story(seed, 1000), story(seed));
  }
}

TEST(EventLoop, OfManySleepersEachIsWokenAtItsDateOrByItsWaker) {
  constexpr std::size_t count = 5000;
  EventLoop loop(5);
  std::vector<std::int64_t> stepped_ns(count, -1);
  struct Sleeper final : Steppable {
    std::int64_t step(std::int64_t now_ns) override {
      if (*stepped_ns != -1) return *stepped_ns = now_ns, kNever;
      *stepped_ns = 0;
      return date_ns;
    }
    std::int64_t* stepped_ns = nullptr;
    std::int64_t date_ns = kNever;
  };
  std::vector<Sleeper> sleepers(count);
  std::vector<Waker*> wakers;
  for (std::size_t i = 0; i < count; ++i) {
    sleepers[i].stepped_ns = &stepped_ns[i];
    if (i % 3 == 0) sleepers[i].date_ns = static_cast<std::int64_t>(1 + (i * 7919) % count);
    wakers.push_back(&loop.add(sleepers[i], {}));
  }
  loop.at(7, [&] {
    for (std::size_t i = 1; i < count; i += 3) wakers[i]->wake();
  });
  EXPECT_EQ(loop.run_until(kNotYet, nullptr, kNever), RunEnd::stuck);
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(stepped_ns[i], i % 3 == 0 ? sleepers[i].date_ns : i % 3 == 1 ? 7 : 0) << i;
}

TEST(EventLoop, TimeJumpsToTheEarliestDateAndStopsAtTheDeadline) {
  EventLoop loop(1);
  std::vector<std::int64_t> dates;
  Stepping ticking([&](std::int64_t now_ns) {
    dates.push_back(now_ns);
    return now_ns + 1000;
  });
  loop.add(ticking, {});
  EXPECT_EQ(loop.run_until(kNotYet, nullptr, 2500), RunEnd::timed_out);
  EXPECT_EQ(dates, (std::vector<std::int64_t>{0, 1000, 2000}));
  EXPECT_EQ(loop.now_ns(), 2500);
}

TEST(EventLoop, ActionsRunInTimeOrderAndNotBeforeNow) {
  EventLoop loop(3);
  std::string order;
  loop.at(30, [&] { order += 'c'; });
  loop.at(10, [&] {
    order += 'a';
    loop.at(5, [&] { order += 'b'; });  // in the past: now
  });
  loop.at(40, [&] { order += 'd'; });
  bool done = false;
  loop.at(50, [&] { done = true; });
  EXPECT_EQ(loop.run_until(kFlagSet, &done, kNever), RunEnd::done);
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(loop.now_ns(), 50);
}

TEST(EventLoop, SaysThatItIsStuckWhenEverybodySleeps) {
  EventLoop loop(1);
  int steps = 0;
  Stepping sleeper([&](std::int64_t) { return ++steps, kNever; });
  Waker& waker = loop.add(sleeper, {});
  EXPECT_EQ(loop.run_until(kNotYet, nullptr, kNever), RunEnd::stuck);
  EXPECT_EQ(steps, 1);
  EXPECT_FALSE(loop.step_one());
  waker.wake();
  EXPECT_TRUE(loop.step_one());
  EXPECT_EQ(steps, 2);
}

TEST(EventLoop, TheCallerStepsInsideRunUntilOnly) {
  EventLoop loop(1);
  int caller_steps = 0;
  Stepping caller([&](std::int64_t) { return ++caller_steps, kNever; });
  loop.add_caller(caller);
  loop.step_some(20);
  EXPECT_FALSE(loop.step_one());
  EXPECT_EQ(caller_steps, 0);
  EXPECT_EQ(loop.run_until(kNotYet, nullptr, kNever), RunEnd::stuck);
  EXPECT_EQ(caller_steps, 1);
}

TEST(EventLoop, AWakeUpDuringAStepGivesAnotherStep) {
  EventLoop loop(1);
  Waker* waker = nullptr;
  int steps = 0;
  Stepping self([&](std::int64_t) {
    if (++steps < 3) waker->wake();
    return kNever;
  });
  waker = &loop.add(self, {});
  EXPECT_EQ(loop.run_until(kNotYet, nullptr, kNever), RunEnd::stuck);
  EXPECT_EQ(steps, 3);
}

TEST(EventLoop, AnotherThreadMayWake) {
  EventLoop loop(1);
  bool done = false;
  int written = 0;
  std::atomic<bool> woken{false};
  Stepping sleeper([&](std::int64_t) {
    done = woken.load(std::memory_order_relaxed) && written == 42;  // ordered by the waker
    return kNever;
  });
  Waker& waker = loop.add(sleeper, {});
  EXPECT_TRUE(loop.step_one());
  std::thread other([&] {
    written = 42;
    woken.store(true, std::memory_order_relaxed);
    waker.wake();
  });
  while (!done)
    if (!loop.step_one()) std::this_thread::sleep_for(std::chrono::microseconds(200));
  other.join();
}

TEST(EventLoop, StepsNothingAfterStopAndWakersStayValid) {
  EventLoop loop(1);
  int steps = 0;
  Stepping counter([&](std::int64_t now_ns) { return ++steps, now_ns; });
  Waker& waker = loop.add(counter, {});
  loop.stop();
  waker.wake();
  EXPECT_FALSE(loop.step_one());
  EXPECT_EQ(loop.run_until(kNotYet, nullptr, kNever), RunEnd::stuck);
  EXPECT_EQ(steps, 0);
}

/// Grants dates one after the other, and brings what a test says.
struct FakeOthers final : SharedTime {
  Grant wait(std::int64_t next_ns) override {
    asked.push_back(next_ns);
    if (grants.empty()) return {.may_go_on = false};
    if (arrive) arrive(asked.size());
    const std::int64_t until_ns = grants.front();
    grants.erase(grants.begin());
    return {.until_ns = until_ns};
  }
  std::vector<std::int64_t> asked, grants;
  std::function<void(std::size_t call)> arrive;
};

TEST(EventLoop, GoesOnAsOthersGrant) {
  EventLoop loop(1);
  FakeOthers others;
  loop.share_time(others);
  std::vector<std::int64_t> seen;
  for (const std::int64_t when : {10, 20, 30}) loop.at(when, [&] { seen.push_back(loop.now_ns()); });
  others.grants = {15, 40};
  others.arrive = [&](std::size_t call) {
    if (call == 1) loop.at(12, [&] { seen.push_back(-loop.now_ns()); });
  };
  EXPECT_EQ(loop.run_until(kNotYet, nullptr, kNever), RunEnd::stuck);
  EXPECT_THAT(seen, testing::ElementsAre(10, -12, 20, 30));
  EXPECT_THAT(others.asked, testing::ElementsAre(10, 20, kNever));
}

TEST(EventLoop, WaitsWithOthersForADeadline) {
  EventLoop loop(1);
  FakeOthers others;
  loop.share_time(others);
  others.grants = {200};
  EXPECT_EQ(loop.run_until(kNotYet, nullptr, 100), RunEnd::timed_out);
  EXPECT_EQ(loop.now_ns(), 100);
  EXPECT_THAT(others.asked, testing::ElementsAre(100));
}

}  // namespace
}  // namespace tandem::base::event_loop_test
