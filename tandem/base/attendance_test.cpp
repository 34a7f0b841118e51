// tandem/base/attendance_test.cpp: one thread attends at a time, and none once the work is removed.
#include "tandem/base/attendance.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/base/thread_driver.hpp"

namespace tandem::base::attendance_test {
namespace {

using namespace std::chrono_literals;

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Finds nothing, and lets the attendant sleep until it is woken.
struct Nothing final : IdleWork {
  void enter() override { EXPECT_EQ(++attendants, 1); }
  Found look() override {
    ++looks;
    return Found::nothing_for_long;
  }
  void sleep(bool (*done)(void*), void* context, std::int64_t) override {
    ++sleeps;
    if (!done(context)) parker.park();
  }
  void leave() override { EXPECT_EQ(--attendants, 0); }
  void wake() noexcept override { parker.unpark(); }
  void tend() override { ++tended; }

  Parker parker;
  std::atomic<int> attendants{0}, looks{0}, sleeps{0}, tended{0};
};

TEST(Attendance, OneAttendsAtATime) {
  Nothing work;
  Attendance attendance;
  EXPECT_FALSE(attendance.enter());  // there is nothing to attend to
  attendance.set(&work);
  std::atomic<int> entered{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int trial = 0; trial < 10'000; ++trial) {
        if (!attendance.enter()) continue;
        ++entered;
        attendance.look();
        attendance.leave();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(entered.load(), 0);
  EXPECT_EQ(work.looks.load(), entered.load());
  attendance.set(nullptr);
}

TEST(Attendance, WorkThatIsTakenAwayIsLeftByWhoSleepsThere) {
  for (int trial = 0; trial < 200; ++trial) {
    Attendance attendance;
    auto work = std::make_unique<Nothing>();
    attendance.set(work.get());
    std::atomic<bool> entered{false};
    std::thread attendant([&] {
      ASSERT_TRUE(attendance.enter());
      entered.store(true);
      while (!attendance.over()) attendance.sleep([](void*) { return false; }, nullptr, kNever);
      attendance.leave();
    });
    while (!entered.load()) std::this_thread::yield();
    if (trial % 2 == 0) attendance.wake();  // without need
    attendance.set(nullptr);
    work.reset();
    attendance.wake();  // no thread attends
    attendant.join();
  }
}

TEST(Attendance, WhatIsPromisedIsLeftToThisThread) {
  Nothing work, other;
  Attendance attendance;
  attendance.set(&work);
  EXPECT_FALSE(work.left_to_this_thread());
  {
    const IdleWork::Promise promise(attendance.work());
    EXPECT_FALSE(promise.pending());
    EXPECT_FALSE(other.left_to_this_thread());
    EXPECT_FALSE(promise.pending());
    std::thread([&] { EXPECT_FALSE(work.left_to_this_thread()); }).join();
    EXPECT_TRUE(work.left_to_this_thread());
    EXPECT_TRUE(promise.pending());
  }
  EXPECT_FALSE(work.left_to_this_thread());
  attendance.tend();
  EXPECT_EQ(work.tended.load(), 1);
  attendance.set(nullptr);
}

/// Attends whenever it is idle.
struct Attending final : Steppable {
  explicit Attending(Attendance& where) : attendance(where) {}
  std::int64_t step(std::int64_t) override {
    if (!attends_now) attends_now = attendance.enter();
    ++steps;
    return kNever;
  }
  Attendance* attends() noexcept override { return attends_now ? &attendance : nullptr; }
  Attendance& attendance;
  bool attends_now = false;
  std::atomic<int> steps{0};
};

TEST(ThreadDriver, WhoAttendsSleepsThereAndIsWokenByItsWaker) {
  Nothing work;
  Attendance attendance;
  attendance.set(&work);
  Attending steppable(attendance);
  ThreadDriver driver(&steady_ns, {});
  Waker& waker = driver.add(steppable, {});
  for (int steps = 1; steps <= 1000; ++steps) {
    waker.wake();
    while (steppable.steps.load() < steps) std::this_thread::yield();
  }
  driver.stop();
  EXPECT_GT(work.sleeps.load(), 0);
  attendance.leave();
  attendance.set(nullptr);
}

}  // namespace
}  // namespace tandem::base::attendance_test
