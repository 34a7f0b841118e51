// tandem/base/parking.cpp: the system calls of the parking primitive.
#include "tandem/base/parking.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace tandem::base {

namespace {

std::uint32_t* address_of(std::atomic<std::uint32_t>& word) noexcept {
  static_assert(sizeof(word) == sizeof(std::uint32_t) && std::atomic<std::uint32_t>::is_always_lock_free);
  return reinterpret_cast<std::uint32_t*>(&word);
}

}  // namespace

void SystemFutex::wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) noexcept {
  timespec timeout{};
  timespec* timeout_pointer = nullptr;
  if (timeout_ns != kForever) {
    if (timeout_ns < 0) timeout_ns = 0;
    timeout.tv_sec = static_cast<std::time_t>(timeout_ns / 1'000'000'000);
    timeout.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000);
    timeout_pointer = &timeout;
  }
  syscall(SYS_futex, address_of(word), FUTEX_WAIT_PRIVATE, expected, timeout_pointer, nullptr, 0);
}

void SystemFutex::wake_one(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, address_of(word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace tandem::base
