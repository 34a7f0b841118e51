// tandem/runtime/task/foreign_calls.hpp: counts calls from threads that nobody joins, so that the runtime outlives them.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace tandem::runtime {

/// Threads that are not the runtime's own (a network's, a copy engine's) end tasks. What they end may be what the application
/// waits for before it destroys the runtime, while the call is still waking somebody. So each call holds a `ForeignCalls::Guard`,
/// and the destructor waits for them with `drain`.
///
/// Orders. The release of the guard's end pairs with the acquire in `drain`; a call is counted before it ends a task, so one
/// whose effect was seen has been counted.
class ForeignCalls {
 public:
  class Guard {
   public:
    explicit Guard(ForeignCalls& calls) noexcept : calls_(calls) { calls_.inside_.fetch_add(1, std::memory_order_relaxed); }
    ~Guard() { calls_.inside_.fetch_sub(1, std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    ForeignCalls& calls_;
  };

  void drain() const noexcept {
    while (inside_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  }

 private:
  std::atomic<std::uint32_t> inside_{0};
};

}  // namespace tandem::runtime
