// tandem/comm/transport/shm/event_set.hpp: the descriptors that a transport waits for, and what it does when they are
// ready.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/transport/shm/unix_socket.hpp"

namespace tandem::comm::internal {

/// An epoll set with a callback per descriptor. A callback may add and remove watches, its own included: a removed one
/// is not called any more, even if it was found ready in the same round. Single-threaded.
class EventSet {
 public:
  static base::Result<EventSet> make();

  /// Calls `ready` in `dispatch` while `fd` is readable or closed. 0: the kernel refused, for lack of memory.
  std::uint64_t add(int fd, std::function<void()> ready);
  /// Removes a watch; its descriptor is still open. No effect for 0 or a watch that was removed.
  void remove(std::uint64_t watch) noexcept;
  /// Calls the callbacks of what is ready now. Returns the number of callbacks.
  unsigned dispatch();
  int descriptor() const noexcept { return epoll_.get(); }

 private:
  struct Watch {
    int fd = -1;
    std::function<void()> ready;
  };
  explicit EventSet(base::FileDescriptor epoll) noexcept : epoll_(std::move(epoll)) {}

  base::FileDescriptor epoll_;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, Watch> watches_;
};

}  // namespace tandem::comm::internal
