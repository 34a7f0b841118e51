// tandem/base/parking_test.cpp: permits, timeouts, and many wake-ups between threads.
#include "tandem/base/parking.hpp"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace tandem::base::parking_test {
namespace {

using namespace std::chrono_literals;

TEST(Parker, APermitThatCameBeforeIsTakenAtOnce) {
  Parker parker;
  EXPECT_FALSE(parker.unpark());  // no thread slept
  EXPECT_TRUE(parker.park());
}

TEST(Parker, HoldsAtMostOnePermit) {
  Parker parker;
  parker.unpark();
  parker.unpark();
  EXPECT_TRUE(parker.try_take());
  EXPECT_FALSE(parker.try_take());
}

TEST(Parker, AnExpiredTimeoutTakesNoPermit) {
  Parker parker;
  EXPECT_FALSE(parker.park(1'000'000));
  EXPECT_FALSE(parker.park(0));
  EXPECT_FALSE(parker.park(-5));
  parker.unpark();
  EXPECT_TRUE(parker.park(0));
}

TEST(Parker, WakesASleeperAndHandsOverWhatWasWritten) {
  Parker parker;
  int written = 0;
  bool seen = false;
  std::thread sleeper([&] {
    while (!parker.park()) {
    }
    seen = written == 42;
  });
  std::this_thread::sleep_for(5ms);
  written = 42;
  parker.unpark();
  sleeper.join();
  EXPECT_TRUE(seen);
}

TEST(Parker, TwoThreadsThatWakeEachOtherAlternate) {
  constexpr int kRounds = 2000;
  Parker first;
  Parker second;
  int count = 0;
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      while (!second.park()) {
      }
      EXPECT_EQ(count++, 2 * i + 1);
      first.unpark();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_EQ(count++, 2 * i);
    second.unpark();
    while (!first.park()) {
    }
  }
  other.join();
  EXPECT_EQ(count, 2 * kRounds);
}

}  // namespace
}  // namespace tandem::base::parking_test
