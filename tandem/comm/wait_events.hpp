// tandem/comm/wait_events.hpp: waits at an epoll set for a time in nanoseconds, on old kernels too.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>

namespace tandem::comm::internal {

/// Waits until a descriptor of the set is ready, for `wait_ns` at most (negative: for ever). Returns the number of
/// events stored; 0 after the time, or when a signal came; -1 with errno otherwise.
///
/// It calls epoll_pwait2. A kernel before 5.11 does not have that call, and an old seccomp profile denies it (ENOSYS,
/// EPERM): then, and from then on, it waits by ppoll at the set itself, which costs a second call when there is an
/// event. Thread-safe.
int wait_events(int epoll, std::span<epoll_event> events, std::int64_t wait_ns) noexcept;

}  // namespace tandem::comm::internal
