// tandem/base/sealed_list_test.cpp: results and refusals of a sealed list. Every order of steps: tests/interleave.
#include "tandem/base/sealed_list.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::base::sealed_list_test {
namespace {

struct Node {
  Node* next = nullptr;
  int payload = 0;
};

TEST(SealedList, ReturnsTheNewestFirstAndThenRefuses) {
  SealedList<Node> list;
  Node a;
  Node b;
  Node late;
  EXPECT_EQ(list.peek(), nullptr);
  EXPECT_TRUE(list.add(&a));
  EXPECT_TRUE(list.add(&b));
  EXPECT_EQ(list.peek(), &b);
  EXPECT_FALSE(list.sealed());
  const Node* first = list.seal();
  ASSERT_EQ(first, &b);
  EXPECT_EQ(first->next, &a);
  EXPECT_EQ(a.next, nullptr);
  EXPECT_TRUE(list.sealed());
  EXPECT_EQ(list.peek(), nullptr);
  EXPECT_FALSE(list.add(&late));
}

TEST(SealedList, OpensAgainEmpty) {
  SealedList<Node> list;
  Node a;
  EXPECT_EQ(list.seal(), nullptr);
  list.reset();
  EXPECT_FALSE(list.sealed());
  EXPECT_TRUE(list.add(&a));
  EXPECT_EQ(list.seal(), &a);
}

TEST(SealedList, EachNodeIsReturnedOrRefused) {
  constexpr int kRounds = 300;
  constexpr int kNodes = 50;
  SealedList<Node> list;
  for (int round = 0; round < kRounds; ++round) {
    list.reset();
    std::vector<Node> nodes(kNodes);
    int work = 0;
    int accepted = 0;
    int returned = 0;
    std::thread consumer([&] {
      for (int i = 0; i < round % 7; ++i) std::this_thread::yield();
      work = 1;
      for (const Node* node = list.seal(); node != nullptr; node = node->next) {
        EXPECT_EQ(node->payload, 7);
        ++returned;
      }
    });
    for (Node& node : nodes) {
      node.payload = 7;
      if (!list.add(&node)) {
        EXPECT_EQ(work, 1);
        break;
      }
      ++accepted;
      if (accepted % 10 == 0) std::this_thread::yield();
    }
    consumer.join();
    ASSERT_EQ(accepted, returned);
  }
}

}  // namespace
}  // namespace tandem::base::sealed_list_test
