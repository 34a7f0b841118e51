// tandem/base/inbox.hpp: a lock-free stack into which any thread puts and from which any thread takes everything.
#pragma once

#include <atomic>

namespace tandem::base {

/// Many producers, many consumers; a consumer takes all entries at once, so the ABA problem cannot arise. Intrusive:
/// `Node` has a member `Node* next`, which the inbox owns while the node is inside.
///
/// Protocol. `put` publishes a chain of nodes with one compare-exchange; `take_all` empties the inbox with one
/// exchange. Both are sequentially consistent, so that a consumer that announces that it will sleep and then finds
/// `empty()`, and a producer that puts and then looks for sleepers, cannot miss each other (see
/// `sched/queues/ready_queues.hpp`).
///
/// Cost: one atomic read-modify-write per call, none for an empty `take_all`.
template <class Node, template <class> class Atomic = std::atomic>
class Inbox {
 public:
  /// Puts the chain from `first` to `last`, linked by `next`; `first` will be the first one taken of them.
  void put(Node* first, Node* last) noexcept {
    Node* head = head_.load(std::memory_order_relaxed);
    do {
      last->next = head;
    } while (!head_.compare_exchange_weak(head, first, std::memory_order_seq_cst, std::memory_order_relaxed));
  }
  void put(Node* node) noexcept { put(node, node); }

  /// Takes all entries, the newest first, linked by `next`; null when there are none.
  Node* take_all() noexcept {
    if (head_.load(std::memory_order_relaxed) == nullptr) return nullptr;
    return head_.exchange(nullptr, std::memory_order_seq_cst);
  }

  /// Takes all entries in the order in which they were put (each chain reversed).
  Node* take_all_in_order() noexcept { return reversed(take_all()); }

  bool empty() const noexcept { return head_.load(std::memory_order_seq_cst) == nullptr; }
  bool looks_empty() const noexcept { return head_.load(std::memory_order_relaxed) == nullptr; }

  static Node* reversed(Node* node) noexcept {
    Node* previous = nullptr;
    while (node != nullptr) {
      Node* next = node->next;
      node->next = previous;
      previous = node;
      node = next;
    }
    return previous;
  }

 private:
  Atomic<Node*> head_{nullptr};
};

}  // namespace tandem::base
