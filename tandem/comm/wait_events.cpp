// tandem/comm/wait_events.cpp: epoll_pwait2, or ppoll.
#include "tandem/comm/wait_events.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>

namespace tandem::comm::internal {
namespace {

std::atomic<bool> has_pwait2{true};  ///< until the kernel has said no; a late reader asks once more

/// Calls epoll_pwait2 by number: glibc before 2.35 has no function for it.
int pwait2(int epoll, std::span<epoll_event> events, const timespec* limit) noexcept {
#ifdef SYS_epoll_pwait2
  return static_cast<int>(
      syscall(SYS_epoll_pwait2, epoll, events.data(), static_cast<int>(events.size()), limit, nullptr, 0));
#else
  (void)epoll, (void)events, (void)limit;
  errno = ENOSYS;
  return -1;
#endif
}

}  // namespace

int wait_events(int epoll, std::span<epoll_event> events, std::int64_t wait_ns) noexcept {
  const timespec limit{.tv_sec = wait_ns / 1'000'000'000, .tv_nsec = wait_ns % 1'000'000'000};
  const timespec* const at_most = wait_ns < 0 ? nullptr : &limit;
  if (has_pwait2.load(std::memory_order_relaxed)) [[likely]] {
    const int count = pwait2(epoll, events, at_most);
    if (count >= 0) return count;
    if (errno == EINTR) return 0;
    if (errno != ENOSYS && errno != EPERM) return -1;
    has_pwait2.store(false, std::memory_order_relaxed);
  }
  if (epoll < 0) {  // ppoll would leave it out, and wait
    errno = EBADF;
    return -1;
  }
  pollfd set{.fd = epoll, .events = POLLIN, .revents = 0};
  const int ready = ppoll(&set, 1, at_most, nullptr);
  if (ready == 0 || (ready < 0 && errno == EINTR)) return 0;
  if (ready < 0) return -1;
  return epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 0);
}

}  // namespace tandem::comm::internal
