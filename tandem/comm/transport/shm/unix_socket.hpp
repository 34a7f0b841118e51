// tandem/comm/transport/shm/unix_socket.hpp: sockets of one host that carry messages with descriptors.
#pragma once

#include <sys/types.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"

namespace tandem::comm::internal {

inline constexpr std::size_t kMostPassedFds = 3;

/// A message: at most as many bytes as the caller has room for, and descriptors.
struct Received {
  enum class Outcome { message, nothing_yet, closed } outcome = Outcome::nothing_yet;
  std::size_t bytes = 0;
  std::array<base::FileDescriptor, kMostPassedFds> fds{};
  std::size_t fd_count = 0;
  bool cut = false;  ///< some descriptors are lost: this process has no room for them
};

struct PeerIdentity {
  pid_t pid = 0;  ///< as seen from this process's namespace; 0: not visible
  uid_t uid = static_cast<uid_t>(-1);
};

enum class Connected { yes, later, busy, refused };

/// Whether a call failed for want of descriptors.
inline bool lacks_descriptors(int error) noexcept { return error == EMFILE || error == ENFILE; }

/// A listening socket. All sockets are non-blocking, of type SOCK_SEQPACKET (messages keep their boundaries), with
/// names in the abstract namespace, which ends where the network namespace does and leaves no file behind.
base::Result<base::FileDescriptor> listen_on(std::string_view name);
/// `later`: the peer has too many callers at once. `busy`: this process has no descriptor now. `refused`: no socket
/// listens under this name.
Connected connect_to(std::string_view name, base::FileDescriptor& socket);
/// Accepts a caller; empty when there is none.
base::FileDescriptor accept_from(const base::FileDescriptor& listener);
/// False: the peer is gone or does not read; small messages always fit into a fresh socket.
bool send_message(const base::FileDescriptor& socket, std::span<const std::byte> bytes,
                  std::span<const int> fds = {}) noexcept;
Received receive_message(const base::FileDescriptor& socket, std::span<std::byte> room) noexcept;
PeerIdentity identity_of(const base::FileDescriptor& socket) noexcept;
/// Whether the other end has closed. Never blocks.
bool is_closed(const base::FileDescriptor& socket) noexcept;

}  // namespace tandem::comm::internal
