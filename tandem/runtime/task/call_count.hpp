// tandem/runtime/task/call_count.hpp: counts calls that are under way, so that the runtime outlives them.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace tandem::runtime {

/// Threads that the runtime does not join (a network's, a copy engine's) end tasks. The application may wait for such a
/// task and then destroy the runtime while the call that ended the task is still waking a thread. So each call holds a
/// `CallCount::Guard`, and the destructor waits for all calls with `drain`.
///
/// Orders. The release at the guard's end pairs with the acquire in `drain`. A call is counted before it ends a task,
/// so a thread that has seen its effect finds it counted.
class CallCount {
 public:
  class Guard {
   public:
    explicit Guard(CallCount& calls) noexcept : calls_(calls) {
      calls_.inside_.fetch_add(1, std::memory_order_relaxed);
    }
    ~Guard() { calls_.inside_.fetch_sub(1, std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    CallCount& calls_;
  };

  void drain() const noexcept {
    while (inside_.load(std::memory_order_acquire) != 0) std::this_thread::yield();
  }

 private:
  std::atomic<std::uint32_t> inside_{0};
};

}  // namespace tandem::runtime
