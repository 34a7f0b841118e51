// tandem/comm/transport/shm/unix_socket.cpp: sockets of one host that carry messages with descriptors.
#include "tandem/comm/transport/shm/unix_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fmt/core.h>

#include "tandem/base/assert.hpp"
#include "tandem/base/fork.hpp"

namespace tandem::comm::internal {
namespace {

struct Address {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

Address abstract_address(std::string_view name) {
  Address address;
  TANDEM_ASSERT(!name.empty() && name.size() < sizeof address.name.sun_path);
  address.name.sun_family = AF_UNIX;
  std::memcpy(address.name.sun_path + 1, name.data(), name.size());  // the leading zero makes it abstract
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

base::FileDescriptor make_socket() {
  return base::kept_from_children(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

base::Result<base::FileDescriptor> listen_on(std::string_view name) {
  base::FileDescriptor socket = make_socket();
  const Address address = abstract_address(name);
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.name), address.bytes) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return base::Error{base::ErrorCode::io, fmt::format("shm: cannot listen on the local socket '{}': {}", name,
                                                        base::system_error_text(errno))};
  }
  return socket;
}

Connected connect_to(std::string_view name, base::FileDescriptor& socket) {
  socket = make_socket();
  if (!socket) return lacks_descriptors(errno) ? Connected::busy : Connected::later;
  const Address address = abstract_address(name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.name), address.bytes) == 0)
    return Connected::yes;
  const bool busy = errno == EAGAIN || errno == EINTR || errno == ENOMEM || errno == ENOBUFS;
  socket.close();
  return busy ? Connected::later : Connected::refused;
}

base::FileDescriptor accept_from(const base::FileDescriptor& listener) {
  return base::kept_from_children(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

bool send_message(const base::FileDescriptor& socket, std::span<const std::byte> bytes,
                  std::span<const int> fds) noexcept {
  TANDEM_ASSERT(fds.size() <= kMostPassedFds);
  iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kMostPassedFds)> ancillary{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = ancillary.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  return ::sendmsg(socket.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

Received receive_message(const base::FileDescriptor& socket, std::span<std::byte> room) noexcept {
  iovec piece{room.data(), room.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int) * kMostPassedFds)> ancillary{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.data();
  message.msg_controllen = ancillary.size();
  const ssize_t got = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC);
  Received received;
  if (got < 0) {
    const bool later = errno == EAGAIN || errno == EINTR;
    received.outcome = later ? Received::Outcome::nothing_yet : Received::Outcome::closed;
    return received;
  }
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      base::FileDescriptor owned(fd);
      if (received.fd_count < received.fds.size()) received.fds[received.fd_count++] = std::move(owned);
    }
  }
  // No sender sends empty messages, so that zero bytes mean the end.
  received.outcome = got == 0 ? Received::Outcome::closed : Received::Outcome::message;
  received.bytes = static_cast<std::size_t>(got);
  received.cut = (message.msg_flags & MSG_CTRUNC) != 0;
  return received;
}

PeerIdentity identity_of(const base::FileDescriptor& socket) noexcept {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return {};
  return {credentials.pid, credentials.uid};
}

bool is_closed(const base::FileDescriptor& socket) noexcept {
  pollfd look{socket.get(), POLLIN, 0};
  if (::poll(&look, 1, 0) <= 0) return false;
  return (look.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace tandem::comm::internal
