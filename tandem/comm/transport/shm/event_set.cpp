// tandem/comm/transport/shm/event_set.cpp: the descriptors that a transport waits for, and what it does when they are
// ready.
#include "tandem/comm/transport/shm/event_set.hpp"

#include <sys/epoll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "tandem/base/fork.hpp"

namespace tandem::comm::internal {

base::Result<EventSet> EventSet::make() {
  auto epoll = base::kept_from_children(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll)
    return base::Error{base::ErrorCode::exhausted,
                       fmt::format("shm: epoll_create1 failed: {}", base::system_error_text(errno))};
  return EventSet(std::move(epoll));
}

std::uint64_t EventSet::add(int fd, std::function<void()> ready) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = ++last_;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return 0;
  watches_.emplace(last_, Watch{fd, std::move(ready)});
  return last_;
}

void EventSet::remove(std::uint64_t watch) noexcept {
  const auto found = watches_.find(watch);
  if (found == watches_.end()) return;
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
  watches_.erase(found);
}

unsigned EventSet::dispatch() {
  std::array<epoll_event, 32> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  unsigned called = 0;
  for (int i = 0; i < count; ++i) {
    const auto found = watches_.find(events[static_cast<std::size_t>(i)].data.u64);
    if (found == watches_.end()) continue;
    const std::function<void()> ready = found->second.ready;  // a copy: the callback may remove its own watch
    ready();
    ++called;
  }
  return called;
}

}  // namespace tandem::comm::internal
