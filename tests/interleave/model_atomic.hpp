// tests/interleave/model_atomic.hpp: atomics whose operations are steps, and plain fields that notice races.
#pragma once

#include <atomic>
#include <cstring>
#include <type_traits>

#include "tests/interleave/explorer.hpp"

namespace tandem::interleave {

constexpr bool acquires(std::memory_order order) noexcept {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst || order == std::memory_order_consume;
}
constexpr bool releases(std::memory_order order) noexcept {
  return order == std::memory_order_release || order == std::memory_order_acq_rel || order == std::memory_order_seq_cst;
}

/// Stands in for std::atomic<T>: the same names, but each operation is one step of the explorer.
///
/// What orders mean here. A release leaves the thread's clock with the value, and an acquire that reads the value joins
/// it. A plain store ends the release sequence, a read-modify-write of any order continues it (C++20 [intro.races]).
template <class T>
class ModelAtomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));

 public:
  ModelAtomic() noexcept : ModelAtomic(T{}) {}
  ModelAtomic(T value) noexcept { at_.bits = bits_of(value); }  // NOLINT: implicit, as std::atomic's
  ModelAtomic(const ModelAtomic&) = delete;
  ModelAtomic& operator=(const ModelAtomic&) = delete;

  T load(std::memory_order order = std::memory_order_seq_cst) const noexcept {
    Explorer* explorer = Explorer::active();
    if (explorer == nullptr) return value_of(at_.bits);
    explorer->point({.name = "load", .location = &at_, .access = Access::read});
    std::uint64_t bits = 0;
    if (!explorer->buffered(&at_, bits)) {
      bits = at_.bits;
      if (acquires(order)) explorer->clock().join(at_.released);
    }
    explorer->note_value(bits);
    return value_of(bits);
  }

  void store(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    Explorer* explorer = Explorer::active();
    if (explorer == nullptr) {
      at_.bits = bits_of(value);
      return;
    }
    if (explorer->buffers() && order != std::memory_order_seq_cst) {
      explorer->point({.name = "buffered store", .location = &at_, .access = Access::none});
      explorer->buffer(&at_, bits_of(value), releases(order) ? &explorer->clock() : nullptr);
    } else {
      explorer->point({.name = "store", .location = &at_, .access = Access::write, .drains = true});
      at_.bits = bits_of(value);
      at_.released = releases(order) ? explorer->clock() : VectorClock{};
    }
    explorer->note_value(bits_of(value));
  }

  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return modify("exchange", order, [value](T) { return value; });
  }
  template <class U = T>
  T fetch_add(U amount, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return modify("fetch_add", order, [amount](T old) { return static_cast<T>(old + amount); });
  }
  template <class U = T>
  T fetch_sub(U amount, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return modify("fetch_sub", order, [amount](T old) { return static_cast<T>(old - amount); });
  }

  bool compare_exchange_weak(T& expected, T desired, std::memory_order success, std::memory_order failure) noexcept {
    return compare_exchange("weak compare_exchange", true, expected, desired, success, failure);
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order success, std::memory_order failure) noexcept {
    return compare_exchange("compare_exchange", false, expected, desired, success, failure);
  }

  /// Model only: sleeps until `ready` says yes to the value, then acquires it.
  template <bool (*Ready)(T)>
  void await() noexcept {
    Explorer* explorer = Explorer::active();
    explorer->point({.name = "await",
                     .location = &at_,
                     .access = Access::write,
                     .drains = true,
                     .ready = [](const Location& at, unsigned) { return Ready(value_of(at.bits)); }});
    explorer->clock().join(at_.released);
  }

  Location& location() noexcept { return at_; }
  /// Model only: the value, without a step. For checks when nothing runs.
  T peek() const noexcept { return value_of(at_.bits); }

 private:
  static std::uint64_t bits_of(T value) noexcept {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }
  static T value_of(std::uint64_t bits) noexcept {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  template <class New>
  T modify(const char* name, std::memory_order order, New new_value) noexcept {
    const T old = value_of(at_.bits);
    Explorer* explorer = Explorer::active();
    if (explorer == nullptr) {
      at_.bits = bits_of(new_value(old));
      return old;
    }
    explorer->point({.name = name, .location = &at_, .access = Access::write, .drains = true});
    return replace(*explorer, order, new_value);
  }
  template <class New>
  T replace(Explorer& explorer, std::memory_order order, New new_value) noexcept {
    const T old = value_of(at_.bits);
    if (acquires(order)) explorer.clock().join(at_.released);
    if (releases(order)) at_.released.join(explorer.clock());
    at_.bits = bits_of(new_value(old));
    explorer.note_value(bits_of(old));
    return old;
  }

  bool compare_exchange(const char* name, bool weak, T& expected, T desired, std::memory_order success,
                        std::memory_order failure) noexcept {
    Explorer* explorer = Explorer::active();
    bool spurious = false;
    if (explorer != nullptr)
      spurious =
          explorer->point({.name = name, .location = &at_, .access = Access::write, .may_fail = weak, .drains = true});
    if (at_.bits == bits_of(expected) && !spurious) {
      if (explorer != nullptr) replace(*explorer, success, [desired](T) { return desired; });
      else at_.bits = bits_of(desired);
      return true;
    }
    expected = value_of(at_.bits);
    if (explorer != nullptr) {
      if (acquires(failure)) explorer->clock().join(at_.released);
      explorer->note_value(at_.bits);
    }
    return false;
  }

  Location at_;
};

/// A plain field. Two accesses, one of them a write, that no chain of releases and acquires orders, fail the schedule.
template <class T>
class ModelPlain {
 public:
  ModelPlain() = default;
  ModelPlain(T value) noexcept : value_(value) {}  // NOLINT: implicit, so that it stands in for a T
  ModelPlain(const ModelPlain&) = delete;
  ModelPlain& operator=(const ModelPlain&) = delete;

  operator T() const noexcept {  // NOLINT: likewise
    if (Explorer* explorer = Explorer::active()) {
      require(writes_.known_to(*explorer), "race: a plain field is read that another thread wrote");
      reads_.add(*explorer);
    }
    return value_;
  }
  ModelPlain& operator=(T value) noexcept {
    if (Explorer* explorer = Explorer::active()) {
      require(writes_.known_to(*explorer), "race: a plain field is written that another thread wrote");
      require(reads_.known_to(*explorer), "race: a plain field is written that another thread read");
      writes_.add(*explorer);
    }
    value_ = value;
    return *this;
  }

 private:
  /// The last accesses of each thread. A thread that has seen another's operation n+1 knows all that
  /// the other did after its operation n.
  struct Accesses : VectorClock {
    bool known_to(Explorer& explorer) const noexcept {
      for (unsigned t = 0; t < kMostThreads; ++t)
        if (t != explorer.thread() && ticks[t] > explorer.clock().ticks[t]) return false;
      return true;
    }
    void add(Explorer& explorer) noexcept { ticks[explorer.thread()] = explorer.clock().ticks[explorer.thread()] + 1; }
  };

  T value_{};
  Accesses writes_;
  mutable Accesses reads_;
};

/// The kernel's futex, for `base::BasicParker`. A sleep may end early once per thread, as signals and old wake-ups make
/// it.
struct ModelFutex {
  static void wait(ModelAtomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) noexcept {
    Explorer& explorer = *Explorer::active();
    Location& at = word.location();
    const std::uint32_t me = 1U << explorer.thread();
    if (explorer.point(
            {.name = "futex wait", .location = &at, .access = Access::write, .may_fail = true, .drains = true}))
      return;
    if (word.peek() != expected) return;
    at.sleepers |= me;
    explorer.point(
        {.name = "futex sleep",
         .location = &at,
         .access = Access::write,
         .may_fail = timeout_ns != INT64_MAX,
         .ready = [](const Location& slept_at, unsigned thread) { return (slept_at.sleepers >> thread & 1) == 0; }});
    at.sleepers &= ~me;
  }
  static void wake_one(ModelAtomic<std::uint32_t>& word) noexcept {
    Location& at = word.location();
    Explorer::active()->point({.name = "futex wake", .location = &at, .access = Access::write, .drains = true});
    at.sleepers &= at.sleepers - 1;
  }
};

}  // namespace tandem::interleave
