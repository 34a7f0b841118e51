// tandem/base/parking.cpp: the parking primitive over Linux futexes.
#include "tandem/base/parking.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace tandem::base {

bool Parker::park(std::int64_t timeout_ns) noexcept {
  if (try_take()) return true;
  std::uint32_t expected = kEmpty;
  if (!state_.compare_exchange_strong(expected, kParked, std::memory_order_acquire, std::memory_order_acquire)) {
    return try_take();
  }
  timespec timeout{};
  timespec* timeout_pointer = nullptr;
  if (timeout_ns != kForever) {
    if (timeout_ns < 0) timeout_ns = 0;
    timeout.tv_sec = static_cast<std::time_t>(timeout_ns / 1'000'000'000);
    timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
    timeout_pointer = &timeout;
  }
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&state_), FUTEX_WAIT_PRIVATE, kParked, timeout_pointer, nullptr, 0);
  return state_.exchange(kEmpty, std::memory_order_acquire) == kPermit;
}

bool Parker::unpark() noexcept {
  if (state_.exchange(kPermit, std::memory_order_seq_cst) != kParked) return false;
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&state_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  return true;
}

}  // namespace tandem::base
