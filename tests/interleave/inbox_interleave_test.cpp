// tests/interleave/inbox_interleave_test.cpp: several producers and consumers of an inbox, under every order of their
// steps.
#include "tandem/base/inbox.hpp"

#include <gtest/gtest.h>

#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::inbox_interleave_test {
namespace {

struct Node {
  ModelPlain<Node*> next{nullptr};
  ModelPlain<int> payload{0};
  int taken = 0;
  int position = -1;  ///< in the order in which its taker met it
};

/// Two threads put (the first a chain of two nodes or two nodes one by one), one or two take everything.
template <unsigned Takers, bool Chain>
struct PutAndTake : Program {
  base::Inbox<Node, ModelAtomic> inbox;
  std::array<Node, 3> nodes;

  unsigned threads() const override { return 2 + Takers; }
  void run(unsigned thread) override {
    if (thread >= 2) return take(inbox.take_all_in_order());
    if (thread == 1) return put(nodes[2], nodes[2]);
    if (Chain) {
      nodes[0].next = &nodes[1];
      put(nodes[0], nodes[1]);
    } else {
      put(nodes[0], nodes[0]);
      put(nodes[1], nodes[1]);
    }
  }
  void put(Node& first, Node& last) {
    first.payload = 1;
    last.payload = 1;
    inbox.put(&first, &last);
  }
  void take(Node* node) {
    for (int position = 0; node != nullptr; ++position) {
      Node* next = node->next;
      require(node->payload == 1, "a node is not as it was put");
      ++node->taken;
      node->position = position;
      node = next;
    }
  }
  void check() override {
    const bool together = nodes[0].taken == 1 && nodes[1].taken == 1 && nodes[0].position != nodes[1].position;
    if (Takers == 1 && together)
      require((nodes[0].position < nodes[1].position) == !Chain,
              "not in the order in which they were put, chains reversed");
    take(inbox.take_all());
    for (const Node& node : nodes) require(node.taken == 1, "a node was lost, or taken twice");
  }
};

TEST(InboxUnderEveryOrder, NothingIsLostOrTakenTwice) {
  expect_holds<PutAndTake<2, true>>({.store_buffers = true});
  expect_holds<PutAndTake<2, false>>();
}

TEST(InboxUnderEveryOrder, TakesInTheOrderOfPuts) {
  expect_holds<PutAndTake<1, true>>();
  expect_holds<PutAndTake<1, false>>({.most_failures = 2});
}

/// One puts and then looks for a sleeper; the other says that it sleeps and then looks into the inbox. At least one
/// sees the other.
struct PutOrSleep : Program {
  base::Inbox<Node, ModelAtomic> inbox;
  ModelAtomic<bool> sleeps{false};
  Node node;
  bool wakes = false;
  bool stays_awake = false;

  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) {
      inbox.put(&node);
      wakes = sleeps.load(std::memory_order_seq_cst);
    } else {
      sleeps.store(true, std::memory_order_seq_cst);
      stays_awake = !inbox.empty();
    }
  }
  void check() override { require(wakes || stays_awake, "the producer and the sleeper missed each other"); }
};

TEST(InboxUnderEveryOrder, ProducerAndSleeperDoNotMissEachOther) {
  expect_holds<PutOrSleep>();
  expect_holds<PutOrSleep>({.store_buffers = true});
}

}  // namespace
}  // namespace tandem::interleave::inbox_interleave_test
