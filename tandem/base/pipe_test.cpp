// tandem/base/pipe_test.cpp: entries come out once and in order. Every order of steps: tests/interleave.
#include "tandem/base/pipe.hpp"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::base::pipe_test {
namespace {

template <class P>
std::vector<int> take(P& pipe) {
  std::vector<int> taken;
  pipe.take_all([&](int* entry) { taken.push_back(*entry); });
  return taken;
}

TEST(Pipe, KeepsTheOrderAcrossChunks) {
  Pipe<int, std::atomic, 3> pipe;
  EXPECT_TRUE(pipe.empty());
  EXPECT_TRUE(take(pipe).empty());
  std::vector<int> numbers(20);
  int put = 0;
  int expected = 0;
  for (const int many : {1, 2, 3, 4, 7, 0, 3}) {  // ends within chunks and at their ends
    for (int i = 0; i < many; ++i) {
      numbers[static_cast<std::size_t>(put)] = put;
      pipe.put(&numbers[static_cast<std::size_t>(put++)]);
    }
    EXPECT_EQ(pipe.empty(), many == 0);
    EXPECT_EQ(pipe.looks_empty(), many == 0);
    for (const int number : take(pipe)) EXPECT_EQ(number, expected++);
    EXPECT_EQ(expected, put);
    EXPECT_TRUE(pipe.empty());
  }
}

TEST(Pipe, IsDestroyedWithEntriesInSeveralChunks) {
  Pipe<int, std::atomic, 2> pipe;
  int number = 0;
  for (int i = 0; i < 7; ++i) pipe.put(&number);
  EXPECT_FALSE(pipe.empty());
}

TEST(Pipe, ConsumersInTurnLoseNothingAndKeepTheOrder) {
  constexpr int kEntries = 20'000;
  Pipe<int, std::atomic, 5> pipe;
  std::vector<int> numbers(kEntries);
  std::mutex turn;
  int next = 0;  // under `turn`
  std::atomic<int> taken{0};
  std::vector<std::thread> consumers;
  for (int c = 0; c < 2; ++c)
    consumers.emplace_back([&] {
      while (taken.load() < kEntries) {
        {
          const std::lock_guard guard(turn);
          pipe.take_all([&](int* entry) {
            EXPECT_EQ(*entry, next++);
            taken.fetch_add(1);
          });
        }
        std::this_thread::yield();
      }
    });
  for (int i = 0; i < kEntries; ++i) {
    numbers[static_cast<std::size_t>(i)] = i;
    pipe.put(&numbers[static_cast<std::size_t>(i)]);
    if (i % 97 == 0) std::this_thread::yield();
  }
  for (auto& consumer : consumers) consumer.join();
  EXPECT_EQ(next, kEntries);
  EXPECT_TRUE(pipe.empty());
}

}  // namespace
}  // namespace tandem::base::pipe_test
