// tests/interleave/sealed_list_interleave_test.cpp: a task's list of successors, under every order of adding and
// sealing.
#include "tandem/base/sealed_list.hpp"

#include <gtest/gtest.h>

#include "tests/interleave/expect.hpp"
#include "tests/interleave/model_atomic.hpp"

namespace tandem::interleave::sealed_list_interleave_test {
namespace {

struct Node {
  ModelPlain<Node*> next{nullptr};
  ModelPlain<int> payload{0};  ///< written by the producer before it adds, read by the consumer
  bool accepted = false;
  bool returned = false;
};

/// A producer adds two nodes while a consumer does its work and seals.
template <template <class, template <class> class> class List>
struct AddAndSeal : Program {
  List<Node, ModelAtomic> list;
  std::array<Node, 2> nodes;
  ModelPlain<int> work{0};  ///< of the consumer, before it seals; seen by a producer that comes too late

  unsigned threads() const override { return 2; }
  void run(unsigned thread) override {
    if (thread == 0) produce();
    else consume();
  }
  void produce() {
    for (int i = 0; i < 2; ++i) {
      Node& node = nodes[static_cast<std::size_t>(i)];
      node.payload = 10 + i;
      node.accepted = list.add(&node);
      if (!node.accepted) require(work == 1, "refused, but the consumer's work is not seen");
      if (list.sealed()) require(work == 1, "sealed, but the consumer's work is not seen");
    }
  }
  void consume() {
    work = 1;
    const Node* newer = nullptr;
    for (Node* node = list.seal(); node != nullptr; node = node->next) {
      require(node->payload == (node == &nodes[0] ? 10 : 11), "a returned node is not as it was added");
      require(!node->returned, "a node is returned twice");
      require(newer != &nodes[0], "not the newest first");
      node->returned = true;
      newer = node;
    }
  }
  void check() override {
    for (const Node& node : nodes) {
      require(!node.accepted || node.returned, "a node was accepted and not returned");
      require(node.accepted || !node.returned, "a node was refused and returned");
    }
    require(nodes[0].accepted || !nodes[1].accepted, "a sealed list let a node in");
  }
};

TEST(SealedListUnderEveryOrder, EachNodeIsReturnedOrRefused) {
  expect_holds<AddAndSeal<base::SealedList>>();
  expect_holds<AddAndSeal<base::SealedList>>({.most_failures = 3, .store_buffers = true});
}

/// As base::SealedList, with weaker orders to choose.
template <std::memory_order Add, std::memory_order Refused, std::memory_order Seal>
struct Weaker {
  template <class N, template <class> class Atomic>
  struct List {
    bool add(N* node) noexcept {
      std::uintptr_t head = head_.load(Refused);
      do {
        if (head == 1) return false;
        node->next = reinterpret_cast<N*>(head);
      } while (!head_.compare_exchange_weak(head, reinterpret_cast<std::uintptr_t>(node), Add, Refused));
      return true;
    }
    N* seal() noexcept { return reinterpret_cast<N*>(head_.exchange(1, Seal)); }
    bool sealed() const noexcept { return head_.load(std::memory_order_acquire) == 1; }
    Atomic<std::uintptr_t> head_{0};
  };
};

TEST(SealedListUnderEveryOrder, EachMemoryOrderIsNeeded) {
  constexpr auto relaxed = std::memory_order_relaxed;
  constexpr auto acquire = std::memory_order_acquire;
  constexpr auto release = std::memory_order_release;
  constexpr auto acq_rel = std::memory_order_acq_rel;
  expect_holds<AddAndSeal<Weaker<release, acquire, acq_rel>::List>>();
  expect_found<AddAndSeal<Weaker<release, acquire, relaxed>::List>>("race");
  // the producer does not see the consumer's work
  expect_found<AddAndSeal<Weaker<release, acquire, acquire>::List>>("race");
  expect_found<AddAndSeal<Weaker<release, acquire, release>::List>>("race");  // the consumer does not see the node
  expect_found<AddAndSeal<Weaker<relaxed, acquire, acq_rel>::List>>("race");
  expect_found<AddAndSeal<Weaker<release, relaxed, acq_rel>::List>>("race");
}

/// Sealed with a load and a store: a node that comes in between is lost.
template <class N, template <class> class Atomic>
struct SealedInTwoSteps
    : Weaker<std::memory_order_release, std::memory_order_acquire, std::memory_order_acq_rel>::List<N, Atomic> {
  N* seal() noexcept {
    const std::uintptr_t head = this->head_.load(std::memory_order_acquire);
    this->head_.store(1, std::memory_order_release);
    return reinterpret_cast<N*>(head);
  }
};

TEST(SealedListUnderEveryOrder, SealingInTwoStepsLosesNodes) {
  expect_found<AddAndSeal<SealedInTwoSteps>>("accepted and not returned");
}

}  // namespace
}  // namespace tandem::interleave::sealed_list_interleave_test
