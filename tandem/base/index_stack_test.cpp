// tandem/base/index_stack_test.cpp: each index is inside at most once, and comes out once.
#include "tandem/base/index_stack.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tandem::base::index_stack_test {
namespace {

TEST(IndexStack, GivesTheLastOnePutFirst) {
  IndexStack<> stack(3);
  EXPECT_TRUE(stack.looks_empty());
  EXPECT_FALSE(stack.take());
  for (const std::uint32_t index : {2u, 0u, 1u}) stack.put(index);
  for (const std::uint32_t index : {1u, 0u, 2u}) EXPECT_EQ(stack.take(), index);
  EXPECT_FALSE(stack.take());
}

TEST(IndexStack, NoIndexIsWithTwoThreads) {
  constexpr std::uint32_t count = 4;
  constexpr int rounds = 20'000;
  IndexStack<> stack(count);
  std::vector<std::atomic<int>> holders(count);
  for (std::uint32_t i = 0; i < count; ++i) stack.put(i);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int round = 0; round < rounds; ++round) {
        const auto first = stack.take(), second = stack.take();
        for (const auto& index : {first, second})
          if (index) {
            EXPECT_EQ(holders[*index].fetch_add(1), 0);
            holders[*index].fetch_sub(1);
          }
        if (first) stack.put(*first);
        if (second) stack.put(*second);
      }
    });
  for (std::thread& thread : threads) thread.join();
  unsigned left = 0;
  while (stack.take()) ++left;
  EXPECT_EQ(left, count);
}

}  // namespace
}  // namespace tandem::base::index_stack_test
