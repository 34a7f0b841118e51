// tandem/base/sealed_list.hpp: a lock-free list that takes entries until its owner seals it, once.
#pragma once

#include <atomic>
#include <cstdint>

#include "tandem/base/assert.hpp"

namespace tandem::base {

/// An intrusive list of `Node`s (which have a member `Node* next`), filled by one producer and emptied once by one
/// consumer.
///
/// Protocol. One thread at a time (the producer) calls `add`; one thread, once (the consumer), calls `seal`, which
/// takes all entries and admits no further one. Both may happen at the same time: then either `seal` returns the new
/// entry, or `add` returns false and the producer knows that the consumer's work came first. `reset` needs exclusive
/// access.
///
/// Orders. `seal` is acquire-release: it pairs with the release of `add` (the consumer sees `next` and the node's
/// content), and with the acquire of a failed `add` or of `sealed` (the producer sees everything that the consumer did
/// before it sealed).
///
/// Cost: `add` is one load and one compare-exchange, `seal` one exchange. No memory of its own.
template <class Node, template <class> class Atomic = std::atomic>
class SealedList {
 public:
  /// Enters `node`, unless the list is sealed: then returns false and `node` is untouched but for `next`.
  bool add(Node* node) noexcept {
    static_assert(alignof(Node) > kSealed, "no node's address may read as the seal");
    std::uintptr_t head = head_.load(std::memory_order_acquire);
    do {
      if (head == kSealed) return false;
      node->next = reinterpret_cast<Node*>(head);
    } while (!head_.compare_exchange_weak(head, reinterpret_cast<std::uintptr_t>(node), std::memory_order_release,
                                          std::memory_order_acquire));
    return true;
  }

  /// Seals the list and returns its entries, the newest first, linked by `next`.
  Node* seal() noexcept {
    const std::uintptr_t head = head_.exchange(kSealed, std::memory_order_acq_rel);
    TANDEM_DEBUG_ASSERT(head != kSealed);
    return reinterpret_cast<Node*>(head);
  }

  bool sealed() const noexcept { return head_.load(std::memory_order_acquire) == kSealed; }

  /// Makes the list empty and open again. No other thread knows the list.
  void reset() noexcept { head_.store(0, std::memory_order_relaxed); }

  /// The newest entry, or null. For diagnosis by the producer while the consumer cannot seal, or that tolerates a stale
  /// answer: nodes must then outlive the walk.
  Node* peek() const noexcept {
    const std::uintptr_t head = head_.load(std::memory_order_acquire);
    return head == kSealed ? nullptr : reinterpret_cast<Node*>(head);
  }

 private:
  static constexpr std::uintptr_t kSealed = 1;
  Atomic<std::uintptr_t> head_{0};
};

}  // namespace tandem::base
