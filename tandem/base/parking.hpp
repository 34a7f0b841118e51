// tandem/base/parking.hpp: where one thread sleeps until another wakes it.
#pragma once

#include <atomic>
#include <cstdint>

namespace tandem::base {

/// The kernel's futex on a word of this process. `wait` sleeps while `word` holds `expected`, until a `wake_one` or for
/// `timeout_ns` (kForever: without a limit), and may return early; `wake_one` wakes one sleeper if there is one.
struct SystemFutex {
  static constexpr std::int64_t kForever = INT64_MAX;

  static void wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) noexcept;
  static void wake_one(std::atomic<std::uint32_t>& word) noexcept;
};

/// A place where one thread sleeps. It has at most one permit.
///
/// Protocol. The owner alone calls `park`; any thread calls `unpark`. `unpark` leaves a permit and wakes the owner if
/// it sleeps; `park` takes the permit and returns, at once if it exists already. So a wake-up that comes before the
/// sleep is not lost, and several wake-ups count as one. The state word goes empty -> parked by the owner, anything ->
/// permit by a waker; the owner sleeps in the kernel only while the word says parked (futex), and a waker makes a
/// system call only if it saw parked.
///
/// Orders. `unpark` releases and `park` acquires: the owner sees what the waker wrote before. Cost: one exchange; a
/// system call when a thread really sleeps.
///
/// `Atomic` and `Futex` are replaced by models where every order of steps is tried (tests/interleave).
template <template <class> class Atomic, class Futex>
class BasicParker {
 public:
  static constexpr std::int64_t kForever = SystemFutex::kForever;

  /// Sleeps until there is a permit or `timeout_ns` has passed; true when it took a permit. May return early without
  /// one.
  bool park(std::int64_t timeout_ns = kForever) noexcept {
    if (try_take()) return true;
    std::uint32_t expected = kEmpty;
    if (!state_.compare_exchange_strong(expected, kParked, std::memory_order_acquire, std::memory_order_acquire)) {
      return try_take();
    }
    Futex::wait(state_, kParked, timeout_ns);
    return state_.exchange(kEmpty, std::memory_order_acquire) == kPermit;
  }

  /// Leaves a permit. Any thread. Returns true when the owner slept and was woken by a system call.
  bool unpark() noexcept {
    if (state_.exchange(kPermit, std::memory_order_seq_cst) != kParked) return false;
    Futex::wake_one(state_);
    return true;
  }

  /// Whether there is a permit, for an owner that sleeps elsewhere, where the thread that leaves a permit wakes it,
  /// too.
  bool has_permit() const noexcept { return state_.load(std::memory_order_seq_cst) == kPermit; }

  /// Takes the permit if there is one, without sleeping. Called by the owner.
  bool try_take() noexcept {
    return state_.load(std::memory_order_relaxed) == kPermit &&
           state_.exchange(kEmpty, std::memory_order_acquire) == kPermit;
  }

 private:
  static constexpr std::uint32_t kEmpty = 0;
  static constexpr std::uint32_t kParked = 1;
  static constexpr std::uint32_t kPermit = 2;

  alignas(64) Atomic<std::uint32_t> state_{kEmpty};
};

using Parker = BasicParker<std::atomic, SystemFutex>;

/// Informs the processor that this is a waiting loop.
inline void pause_cpu() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace tandem::base
