// tandem/base/blas_threads_test.cpp: other threads are detected, workers and sleepers are not.
#include "tandem/base/blas_threads.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tandem::base::blas_threads_test {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Number of threads detected beside a thread of that name that computes, or sleeps, until it has used 50 ms.
int others_beside(const char* name, bool computes) {
  std::atomic<bool> stop{false};
  ThreadWatch watch(now_ns());
  std::thread thread([&] {
    pthread_setname_np(pthread_self(), name);
    while (!stop.load()) {
      if (!computes) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  // A loaded machine may give the thread little time: check until it has had its share, or long enough.
  int seen = 0;
  for (int look = 0; look < 50 && seen == 0; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));
    seen = watch.busy_others(now_ns(), 1);
    if (!computes && look == 3) break;
    if (computes && name[0] == 't' && look == 3) break;
  }
  stop.store(true);
  thread.join();
  return seen;
}

TEST(ThreadWatch, SeesAThreadThatComputes) {
  if (thread_times_ns().empty()) GTEST_SKIP() << "the system shows no thread times";
  EXPECT_EQ(others_beside("other", true), 1);
}
TEST(ThreadWatch, DoesNotMindAThreadThatSleeps) { EXPECT_EQ(others_beside("sleeper", false), 0); }
TEST(ThreadWatch, DoesNotMindAWorker) { EXPECT_EQ(others_beside("tandem-w7", true), 0); }
TEST(ThreadWatch, DoesNotMindTheProgressThread) { EXPECT_EQ(others_beside("tandem-comm", true), 0); }
TEST(ThreadWatch, LooksNoMoreOftenThanAsked) {
  ThreadWatch watch(1'000);
  EXPECT_EQ(watch.busy_others(1'500, 1'000), 0);
}
TEST(BlasThreads, TheSwitchIsFoundOnce) { EXPECT_EQ(restrict_blas_threads(), restrict_blas_threads()); }

}  // namespace
}  // namespace tandem::base::blas_threads_test
