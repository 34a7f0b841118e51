// tandem/base/spin_lock.hpp: a lock for sections of some tens of nanoseconds, which yields the core to a preempted
// holder.
#pragma once

#include <sched.h>

#include <atomic>

#include "tandem/base/parking.hpp"

namespace tandem::base {

/// Meets the standard's Lockable, for std::lock_guard. Spins a little, then yields: with more threads than cores the
/// holder may have been preempted, and only giving up the core lets it go on.
class SpinLock {
 public:
  void lock() noexcept {
    if (!take()) [[unlikely]] spin_until_taken();
  }
  bool try_lock() noexcept {
    return !locked_.load(std::memory_order_relaxed) && take();
  }
  /// Waits until the present holder has unlocked it, and acquires what was done under it until then. Does not keep
  /// others out.
  void wait_for_holder() const noexcept {
    for (int spins = 0; locked_.load(std::memory_order_acquire);) spin(spins);  // pairs with the release of unlock
  }
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  static constexpr int kSpinsBeforeYield = 64;
  // pairs with the release of unlock
  bool take() noexcept { return !locked_.exchange(true, std::memory_order_acquire); }
  [[gnu::noinline]] void spin_until_taken() noexcept {
    int spins = 0;
    do {
      while (locked_.load(std::memory_order_relaxed)) spin(spins);
    } while (!take());
  }
  static void spin(int& spins) noexcept {
    if (++spins < kSpinsBeforeYield) pause_cpu();
    else sched_yield();
  }

  std::atomic<bool> locked_{false};
};

}  // namespace tandem::base
