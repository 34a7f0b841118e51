// tandem/base/thread_driver_test.cpp: a thread per steppable sleeps until it is woken, wakes in time, and can be
// stopped.
#include "tandem/base/thread_driver.hpp"

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace tandem::base::thread_driver_test {
namespace {

using namespace std::chrono_literals;

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Calls a function at each step.
template <class Function>
struct Stepping final : Steppable {
  explicit Stepping(Function f) : function(std::move(f)) {}
  std::int64_t step(std::int64_t now_ns) override { return function(now_ns); }
  Function function;
};

TEST(ThreadDriver, HoldsASteppableUntilItsFirstWakeUp) {
  std::atomic<int> steps{0};
  Stepping counter([&](std::int64_t) { return ++steps, kNever; });
  ThreadDriver driver(&steady_ns, {});
  Waker& waker = driver.add(counter, {.core = -1, .name = "held"});
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(steps.load(), 0);
  waker.wake();
  while (steps.load() == 0) std::this_thread::sleep_for(1ms);
  driver.stop();
  EXPECT_EQ(steps.load(), 1);
  waker.wake();  // still there, without effect
  EXPECT_EQ(steps.load(), 1);
}

TEST(ThreadDriver, StopsWhatNeverBegan) {
  std::atomic<int> steps{0};
  Stepping counter([&](std::int64_t) { return ++steps, kNever; });
  ThreadDriver driver(&steady_ns, {});
  driver.add(counter, {});
  driver.stop();
  driver.stop();  // a second time: nothing
  EXPECT_EQ(steps.load(), 0);
}

TEST(ThreadDriver, NamesAndBindsItsThreads) {
  std::string name;
  int bound_to = -1;
  std::atomic<bool> stepped{false};
  Stepping look([&](std::int64_t) {
    char buffer[16];
    pthread_getname_np(pthread_self(), buffer, sizeof buffer);
    name = buffer;
    stepped = true;
    return kNever;
  });
  ThreadDriver driver(&steady_ns, [&](int core) { bound_to = core; });
  driver.add(look, {.core = 3, .name = "a name that is too long"}).wake();
  while (!stepped) std::this_thread::sleep_for(1ms);
  driver.stop();
  EXPECT_EQ(name, "a name that is ");
  EXPECT_EQ(bound_to, 3);
}

TEST(ThreadDriver, ARestCountsFromTheEndOfAStepThatWorkedForLong) {
  // The step finds nothing at its end, and asks for another one soon after that. The pause must not last as long as the
  // work did.
  std::int64_t asked_for_ns = 0;
  std::int64_t late_ns = -1;
  Stepping working([&](std::int64_t now_ns) {
    if (asked_for_ns != 0) {
      late_ns = now_ns - asked_for_ns;
      return kNever;
    }
    while (steady_ns() - now_ns < 200'000'000) std::this_thread::sleep_for(1ms);
    return asked_for_ns = steady_ns() + 1'000;
  });
  ThreadDriver driver(&steady_ns, {});
  driver.add_caller(working);
  driver.run_until([](void* late) { return *static_cast<std::int64_t*>(late) >= 0; }, &late_ns, kNever);
  EXPECT_LT(late_ns, 100'000'000);
}

TEST(ThreadDriver, StepsAgainAtTheDateAskedFor) {
  for (const std::int64_t pause_ns : {ThreadDriver::spin_below_ns / 2, std::int64_t{2'000'000}}) {
    std::atomic<int> steps{0};
    std::atomic<bool> early{false};
    std::int64_t next_ns = 0;
    Stepping ticking([&](std::int64_t now_ns) {
      if (now_ns < next_ns) early = true;  // allowed, but not without a wake-up or a signal, and there are none
      next_ns = now_ns + pause_ns;
      return ++steps < 5 ? next_ns : kNever;
    });
    ThreadDriver driver(&steady_ns, {});
    driver.add(ticking, {}).wake();
    while (steps.load() < 5) std::this_thread::sleep_for(1ms);
    driver.stop();
    EXPECT_FALSE(early.load());
  }
}

/// Measures processor time, which a thread that sleeps does not use.
TEST(ThreadDriver, WhatWaitsAwakeStaysAwakeUntilItsDateOrItsWakeUp) {
  constexpr std::int64_t kPauseNs = 50'000'000;
  struct Awake final : Steppable {
    std::int64_t step(std::int64_t now_ns) override {
      timespec used{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
      const std::int64_t used_ns = used.tv_sec * 1'000'000'000 + used.tv_nsec;
      if (steps == 1) paused_ns = now_ns - began_ns;
      if (steps == 1) worked_ns = used_ns - used_before_ns;
      began_ns = now_ns;
      used_before_ns = used_ns;
      return ++steps < 3 ? now_ns + (steps == 1 ? kPauseNs : 1'000 * kPauseNs) : kNever;
    }
    bool waits_awake() const noexcept override { return true; }
    std::atomic<int> steps{0};
    std::int64_t began_ns = 0, used_before_ns = 0, paused_ns = 0, worked_ns = 0;
  } awake;
  ThreadDriver driver(&steady_ns, {});
  Waker& waker = driver.add(awake, {});
  waker.wake();
  while (awake.steps.load() < 2) std::this_thread::sleep_for(1ms);
  waker.wake();
  while (awake.steps.load() < 3) std::this_thread::sleep_for(1ms);
  driver.stop();
  EXPECT_GE(awake.paused_ns, kPauseNs);
  EXPECT_GE(awake.worked_ns, kPauseNs / 20) << "it has slept";  // others may have had the core
}

TEST(ThreadDriver, TheCallerIsWokenWhenItsConditionHolds) {
  std::atomic<int> done{0};
  Waker* caller = nullptr;
  Stepping idle([](std::int64_t) { return kNever; });
  Stepping worker([&](std::int64_t) {
    std::this_thread::sleep_for(2ms);
    done.store(1, std::memory_order_release);
    caller->wake();
    return kNever;
  });
  ThreadDriver driver(&steady_ns, {});
  caller = &driver.add_caller(idle);
  driver.add(worker, {}).wake();
  EXPECT_EQ(driver.run_until([](void* context) { return static_cast<std::atomic<int>*>(context)->load() == 1; }, &done,
                             kNever),
            RunEnd::done);
}

TEST(ThreadDriver, TheCallerStepsInsideRunUntilOnlyAndGivesUpAtTheDeadline) {
  int steps = 0;
  Stepping counter([&](std::int64_t) { return ++steps, kNever; });
  ThreadDriver driver(&steady_ns, {});
  driver.add_caller(counter).wake();
  EXPECT_EQ(steps, 0);
  const std::int64_t deadline_ns = driver.now_ns() + 3'000'000;
  EXPECT_EQ(driver.run_until([](void*) { return false; }, nullptr, deadline_ns), RunEnd::timed_out);
  EXPECT_GE(driver.now_ns(), deadline_ns);
  EXPECT_GE(steps, 1);
  EXPECT_EQ(driver.run_until([](void*) { return true; }, nullptr, kNever), RunEnd::done);
}

TEST(ThreadDriver, NoWakeUpBetweenThreadsIsLost) {
  constexpr int kRounds = 2000;
  std::atomic<int> count{0};
  Waker* wakers[2] = {};
  const auto turn = [&](int me) {
    return [&count, &wakers, me](std::int64_t) {
      if (count.load() % 2 == me && count.load() < kRounds) {
        ++count;
        wakers[1 - me]->wake();
      }
      return kNever;
    };
  };
  Stepping even(turn(0));
  Stepping odd(turn(1));
  ThreadDriver driver(&steady_ns, {});
  wakers[0] = &driver.add(even, {});
  wakers[1] = &driver.add(odd, {});
  wakers[0]->wake();
  wakers[1]->wake();
  while (count.load() < kRounds) std::this_thread::sleep_for(1ms);
  driver.stop();
}

}  // namespace
}  // namespace tandem::base::thread_driver_test
