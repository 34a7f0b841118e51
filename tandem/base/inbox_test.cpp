// tandem/base/inbox_test.cpp: entries come out once and in order. Every order of steps: tests/interleave.
#include "tandem/base/inbox.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace tandem::base::inbox_test {
namespace {

struct Node {
  Node* next = nullptr;
  int producer = 0;
  int number = 0;
};

TEST(Inbox, TakesEverythingTheNewestFirstOrInOrder) {
  Inbox<Node> inbox;
  EXPECT_TRUE(inbox.empty());
  EXPECT_EQ(inbox.take_all(), nullptr);
  Node a;
  Node b;
  inbox.put(&a);
  inbox.put(&b);
  EXPECT_FALSE(inbox.looks_empty());
  ASSERT_EQ(inbox.take_all(), &b);
  EXPECT_EQ(b.next, &a);
  EXPECT_EQ(a.next, nullptr);
  EXPECT_TRUE(inbox.empty());
  inbox.put(&a);
  inbox.put(&b);
  ASSERT_EQ(inbox.take_all_in_order(), &a);
  EXPECT_EQ(a.next, &b);
  EXPECT_EQ(b.next, nullptr);
}

TEST(Inbox, PutsAChainAtOnce) {
  Inbox<Node> inbox;
  Node first;
  Node last;
  Node older;
  inbox.put(&older);
  first.next = &last;
  inbox.put(&first, &last);
  ASSERT_EQ(inbox.take_all(), &first);
  EXPECT_EQ(first.next, &last);
  EXPECT_EQ(last.next, &older);
}

TEST(Inbox, ManyProducersAndConsumersLoseNothingAndKeepEachProducersOrder) {
  constexpr int kProducers = 3;
  constexpr int kEach = 2000;
  Inbox<Node> inbox;
  std::vector<std::vector<Node>> nodes(kProducers, std::vector<Node>(kEach));
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int p = 0; p < kProducers; ++p)
    threads.emplace_back([&, p] {
      for (int i = 0; i < kEach; ++i) {
        Node& node = nodes[static_cast<std::size_t>(p)][static_cast<std::size_t>(i)];
        node.producer = p;
        node.number = i;
        inbox.put(&node);
        if (i % 64 == 0) std::this_thread::yield();
      }
    });
  for (int c = 0; c < 2; ++c)
    threads.emplace_back([&] {
      std::vector<int> last(kProducers, -1);
      while (taken.load(std::memory_order_relaxed) < kProducers * kEach) {
        Node* node = inbox.take_all_in_order();
        if (node == nullptr) std::this_thread::yield();
        for (; node != nullptr; node = node->next) {
          int& before = last[static_cast<std::size_t>(node->producer)];
          EXPECT_LT(before, node->number);
          before = node->number;
          taken.fetch_add(1, std::memory_order_relaxed);
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(taken.load(), kProducers * kEach);
  EXPECT_TRUE(inbox.empty());
}

}  // namespace
}  // namespace tandem::base::inbox_test
