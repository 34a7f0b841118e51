// tandem/base/spin_lock_test.cpp: mutual exclusion, and waiting for a holder without locking.
#include "tandem/base/spin_lock.hpp"

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::base::spin_lock_test {
namespace {

TEST(SpinLock, OneAtATimeCounts) {
  constexpr int kThreads = 4;
  constexpr int kEach = 5000;
  SpinLock lock;
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        std::lock_guard guard(lock);
        ++count;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(count, kThreads * kEach);
}

TEST(SpinLock, TryLockSaysNoWhileItIsHeld) {
  SpinLock lock;
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(SpinLock, WhoWaitsForTheHolderSeesWhatItDid) {
  SpinLock lock;
  lock.wait_for_holder();  // without a holder: at once
  int written = 0;
  lock.lock();
  std::thread waiter([&] {
    lock.wait_for_holder();
    EXPECT_EQ(written, 42);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  written = 42;
  lock.unlock();
  waiter.join();
  EXPECT_TRUE(lock.try_lock());  // waiting did not take the lock
}

}  // namespace
}  // namespace tandem::base::spin_lock_test
