// tandem/base/turnstile.hpp: a mutual exclusion in which a task that does not get in is queued, and no thread blocks.
#pragma once

#include <atomic>
#include <cstdint>

#include "tandem/base/assert.hpp"

namespace tandem::base {

/// A mutual exclusion without blocking: `enter` says whether the visitor got in. A visitor that did not is queued, and a later
/// `leave` of the visitor inside lets it in. Intrusive: `Visitor` has `Visitor* next`.
///
/// Protocol. The state is: free; taken; or taken with a stack of visitors that came since. The visitor inside owns `queue_`,
/// which holds earlier visitors in order of arrival; no other thread touches it. `leave` lets in the visitor that `better`
/// prefers (the earliest among equals), or frees the turnstile.
///
/// Orders. Each change of state is acquire-release, so that what one holder did is seen by the next.
///
/// Deadlock. A visitor that needs several turnstiles enters them in one global order (of their addresses), so no cycle can
/// form.
template <class Visitor, template <class> class Atomic = std::atomic>
class Turnstile {
 public:
  /// True: `visitor` is inside. False: it waits, and a later `leave` returns it.
  bool enter(Visitor* visitor) noexcept {
    static_assert(alignof(Visitor) > kTaken, "no visitor's address may read as the mark of a taken turnstile");
    std::uintptr_t state = state_.load(std::memory_order_relaxed);
    for (;;) {
      if (state == kFree) {
        if (state_.compare_exchange_weak(state, kTaken, std::memory_order_acq_rel, std::memory_order_relaxed)) return true;
      } else {
        visitor->next = state == kTaken ? nullptr : reinterpret_cast<Visitor*>(state);
        if (state_.compare_exchange_weak(state, reinterpret_cast<std::uintptr_t>(visitor), std::memory_order_acq_rel,
                                         std::memory_order_relaxed))
          return false;
      }
    }
  }

  /// The visitor inside leaves. Returns the visitor that is inside now, or null when the turnstile is free. `better(a, b)`: a
  /// goes before b.
  template <class Better>
  Visitor* leave(Better better) noexcept {
    collect();
    if (queue_ == nullptr) {
      std::uintptr_t expected = kTaken;
      if (state_.compare_exchange_strong(expected, kFree, std::memory_order_acq_rel, std::memory_order_relaxed)) return nullptr;
      collect();  // a visitor came in between
    }
    TANDEM_DEBUG_ASSERT(queue_ != nullptr);
    Visitor** best = &queue_;
    for (Visitor** at = &queue_; *at != nullptr; at = &(*at)->next)
      if (better(**at, **best)) best = at;
    Visitor* chosen = *best;
    *best = chosen->next;
    chosen->next = nullptr;
    return chosen;
  }

  bool free() const noexcept { return state_.load(std::memory_order_acquire) == kFree; }

 private:
  static constexpr std::uintptr_t kFree = 0;
  static constexpr std::uintptr_t kTaken = 1;

  /// Moves those who came since to the end of the queue, in order of arrival. By the one inside only.
  void collect() noexcept {
    std::uintptr_t state = state_.load(std::memory_order_relaxed);
    if (state == kTaken) return;
    state = state_.exchange(kTaken, std::memory_order_acq_rel);
    Visitor* in_order = nullptr;
    for (auto* visitor = reinterpret_cast<Visitor*>(state); visitor != nullptr;) {
      Visitor* next = visitor->next;
      visitor->next = in_order;
      in_order = visitor;
      visitor = next;
    }
    Visitor** end = &queue_;
    while (*end != nullptr) end = &(*end)->next;
    *end = in_order;
  }

  Atomic<std::uintptr_t> state_{kFree};
  Visitor* queue_ = nullptr;
};

}  // namespace tandem::base
