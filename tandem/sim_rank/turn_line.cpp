// tandem/sim_rank/turn_line.cpp: frames on a local socket.
#include "tandem/sim_rank/turn_line.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fmt/core.h>

#include "tandem/base/assert.hpp"

namespace tandem::sim {

namespace {

struct Address {
  explicit Address(std::string_view name) {
    TANDEM_ASSERT(!name.empty() && name.size() < sizeof place.sun_path);
    place.sun_family = AF_UNIX;
    std::memcpy(place.sun_path + 1, name.data(), name.size());  // a name of the abstract namespace begins with a zero
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&place); }

  sockaddr_un place{};
  socklen_t bytes = 0;
};

base::FileDescriptor make_socket(int flags) {
  return base::FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

base::Error io_error(const char* what) {
  return {base::ErrorCode::io, fmt::format("{}: {}", what, base::system_error_text(errno))};
}

}  // namespace

base::Result<TurnLine> TurnLine::connect(std::string_view name) {
  base::FileDescriptor socket = make_socket(0);
  const Address address(name);
  if (!socket || ::connect(socket.get(), address.get(), address.bytes) != 0)
    return io_error("a rank cannot reach its simulation");
  return TurnLine(std::move(socket));
}

base::Result<base::FileDescriptor> TurnLine::listen(std::string_view name) {
  base::FileDescriptor socket = make_socket(SOCK_NONBLOCK);
  const Address address(name);
  if (!socket || ::bind(socket.get(), address.get(), address.bytes) != 0 || ::listen(socket.get(), SOMAXCONN) != 0)
    return io_error("a simulation cannot listen for its ranks");
  return socket;
}

base::FileDescriptor TurnLine::accept_from(const base::FileDescriptor& listener) {
  base::FileDescriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (!socket || ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.uid != ::geteuid())
    return {};
  return socket;
}

bool TurnLine::send(TurnKind kind, std::string_view body) {
  const std::string bytes = comm::internal::frame_bytes(static_cast<std::uint8_t>(kind), body);
  for (std::string_view rest = bytes; !rest.empty();) {
    const ssize_t sent = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent >= 0)
      rest.remove_prefix(static_cast<std::size_t>(sent));
    else if (errno != EINTR)
      return false;
  }
  return true;
}

bool TurnLine::read(bool waits) {
  std::array<char, std::size_t{64} << 10> room;
  while (true) {
    const ssize_t got = ::recv(socket_.get(), room.data(), room.size(), waits ? 0 : MSG_DONTWAIT);
    if (got > 0) {
      frames_.add({room.data(), static_cast<std::size_t>(got)});
      return true;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && errno == EAGAIN;
  }
}

bool TurnLine::receive(comm::internal::Frame& frame) {
  while (!frames_.next(frame))
    if (frames_.malformed() || !read(true)) return false;
  return true;
}

}  // namespace tandem::sim
