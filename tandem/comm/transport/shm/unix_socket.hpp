// tandem/comm/transport/shm/unix_socket.hpp: sockets of one host that carry messages with descriptors.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tandem/base/result.hpp"

namespace tandem::comm::internal {

/// An open file descriptor, or -1; closed at the end. A move-only value.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept;

 private:
  int fd_ = -1;
};

inline constexpr std::size_t kMostPassedFds = 3;

/// A message: at most as many bytes as the caller has room for, and descriptors.
struct Received {
  enum class Outcome { message, nothing_yet, closed } outcome = Outcome::nothing_yet;
  std::size_t bytes = 0;
  std::array<Fd, kMostPassedFds> fds{};
  std::size_t fd_count = 0;
};

struct PeerIdentity {
  pid_t pid = 0;  ///< as seen from this process's namespace; 0: not visible
  uid_t uid = static_cast<uid_t>(-1);
};

enum class Connected { yes, later, refused };

/// All sockets are non-blocking, of type SOCK_SEQPACKET (messages keep their boundaries), with names in the abstract namespace,
/// which ends where the network namespace does and leaves no file behind.
base::Result<Fd> listen_on(std::string_view name);
/// `later`: the peer has too many callers at once. `refused`: nobody listens under this name.
Connected connect_to(std::string_view name, Fd& socket);
/// An empty Fd when nobody calls.
Fd accept_from(const Fd& listener);
/// False: the peer is gone or does not read; small messages always fit into a fresh socket.
bool send_message(const Fd& socket, std::span<const std::byte> bytes, std::span<const int> fds = {}) noexcept;
Received receive_message(const Fd& socket, std::span<std::byte> room) noexcept;
PeerIdentity identity_of(const Fd& socket) noexcept;
/// Whether the other end has closed. Never blocks.
bool is_closed(const Fd& socket) noexcept;

}  // namespace tandem::comm::internal
