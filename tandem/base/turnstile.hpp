// tandem/base/turnstile.hpp: a mutual exclusion in which refused tasks are queued, and no thread blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::base {

/// A mutual exclusion without blocking: `enter` returns whether the visitor got in. A visitor that did not is queued,
/// and a later `leave` of the visitor inside lets it in. Intrusive: `Visitor` has `Visitor* next`, and a member
/// function `place_at_turnstile` that returns a reference to `Visitor* child` and to an unsigned `number` of at least
/// 48 bits. Both belong to the turnstile from `enter`, if that returns false, until a `leave` returns the visitor.
///
/// Protocol. The state is: free; taken; or taken with a stack of visitors that came since. The visitor inside owns
/// `best_` and `arrivals_`; no other thread touches them, nor the visitors in the heap `best_`. `leave` moves the stack
/// to the heap and lets in the visitor that `better` prefers (the earliest among equals), or frees the turnstile.
///
/// Orders. Each change of state is acquire-release, so that what one holder did is seen by the next. The release of the
/// exchange in `enter` pairs with the acquire of that in `collect`: the visitor inside sees what a waiting one has
/// written before.
///
/// Cost. `enter` is one exchange. `leave` is one exchange without visitors that wait; else O(log n) comparisons for n
/// of them, amortised, since those that wait are a pairing heap (Fredman, Sedgewick, Sleator, Tarjan: The Pairing Heap,
/// Algorithmica 1, 1986). No memory of its own.
///
/// Deadlock. A visitor that needs several turnstiles enters them in one global order, so no cycle can form.
template <class Visitor, template <class> class Atomic = std::atomic>
class Turnstile {
 public:
  /// True: `visitor` is inside. False: it waits, and a later `leave` returns it.
  bool enter(Visitor* visitor) noexcept {
    static_assert(alignof(Visitor) > kTaken, "no visitor's address may read as the mark of a taken turnstile");
    std::uintptr_t state = state_.load(std::memory_order_relaxed);
    for (;;) {
      if (state == kFree) {
        if (state_.compare_exchange_weak(state, kTaken, std::memory_order_acq_rel, std::memory_order_relaxed))
          return true;
      } else {
        visitor->next = state == kTaken ? nullptr : reinterpret_cast<Visitor*>(state);
        if (state_.compare_exchange_weak(state, reinterpret_cast<std::uintptr_t>(visitor), std::memory_order_acq_rel,
                                         std::memory_order_relaxed))
          return false;
      }
    }
  }

  /// The visitor inside leaves. Returns the next visitor inside, or null when the turnstile is free. `better(a, b)`: a
  /// goes before b.
  template <class Better>
  Visitor* leave(Better better) noexcept {
    collect(better);
    if (best_ == nullptr) {
      std::uintptr_t expected = kTaken;
      if (state_.compare_exchange_strong(expected, kFree, std::memory_order_acq_rel, std::memory_order_relaxed))
        return nullptr;
      collect(better);  // a visitor came in between
    }
    TANDEM_DEBUG_ASSERT(best_ != nullptr);
    return take_best(better);
  }

  bool free() const noexcept { return state_.load(std::memory_order_acquire) == kFree; }

 private:
  static constexpr std::uintptr_t kFree = 0;
  static constexpr std::uintptr_t kTaken = 1;
  static constexpr std::uint64_t kNumbers = (std::uint64_t{1} << 48) - 1;

  /// Moves visitors that came since to the heap, in order of arrival. Only the visitor inside calls it.
  template <class Better>
  void collect(Better better) noexcept {
    std::uintptr_t state = state_.load(std::memory_order_relaxed);
    if (state == kTaken) return;
    state = state_.exchange(kTaken, std::memory_order_acq_rel);
    Visitor* in_order = nullptr;
    for (auto* visitor = reinterpret_cast<Visitor*>(state); visitor != nullptr;) {
      Visitor* const next = visitor->next;
      visitor->next = in_order;
      in_order = visitor;
      visitor = next;
    }
    while (in_order != nullptr) {
      Visitor* const visitor = in_order;
      in_order = visitor->next;
      auto& place = visitor->place_at_turnstile();
      place.child = nullptr;
      place.number = arrivals_++ & kNumbers;
      best_ = merge(best_, visitor, better);
    }
  }

  /// Merges two heaps: the top that goes first gets the other heap among its children. `b` is not empty.
  template <class Better>
  static Visitor* merge(Visitor* a, Visitor* b, Better better) noexcept {
    if (a == nullptr) return b;
    const bool a_is_earlier = a->place_at_turnstile().number < b->place_at_turnstile().number;
    if (a_is_earlier ? better(*b, *a) : !better(*a, *b)) std::swap(a, b);
    auto& place = a->place_at_turnstile();
    Visitor* const others = place.child;
    b->next = others;
    place.child = b;
    return a;
  }

  /// Removes the top of the heap, which is not empty; its children become the heap: neighbours are merged in pairs,
  /// then all pairs.
  template <class Better>
  Visitor* take_best(Better better) noexcept {
    Visitor* const chosen = best_;
    Visitor* pairs = nullptr;
    for (Visitor* first = chosen->place_at_turnstile().child; first != nullptr;) {
      Visitor* const second = first->next;
      Visitor* pair = first;
      first = nullptr;
      if (second != nullptr) {
        first = second->next;
        pair = merge(pair, second, better);
      }
      pair->next = pairs;
      pairs = pair;
    }
    best_ = nullptr;
    while (pairs != nullptr) {
      Visitor* const next = pairs->next;
      best_ = merge(best_, pairs, better);
      pairs = next;
    }
    chosen->next = nullptr;
    return chosen;
  }

  Atomic<std::uintptr_t> state_{kFree};
  Visitor* best_ = nullptr;      ///< the top of the heap of those that wait; null: it is empty
  std::uint64_t arrivals_ = 0;   ///< number of visitors that have been in the heap
};

}  // namespace tandem::base
