// tandem/comm/transport/tcp/socket.cpp: the system calls of stream sockets, non-blocking, with readable errors.
#include "tandem/comm/transport/tcp/socket.hpp"

#include <linux/tcp.h>  // knows more of `tcp_info` than the C library does
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include <fmt/core.h>

#include "tandem/base/fork.hpp"

namespace tandem::comm::internal {

namespace {

void set(int fd, int level, int name, int value) { (void)setsockopt(fd, level, name, &value, sizeof value); }

// Limits the part of the kernel's buffer that congestion control keeps back: urgent packets wait behind it, and it
// speeds nothing up.
constexpr int most_unsent_bytes = 128 << 10;
constexpr int backlog = 4096;  // the system cuts it to net.core.somaxconn

}  // namespace

std::string error_text(int error) { return base::system_error_text(error); }

base::Error io_error(std::string_view what) {
  return {base::ErrorCode::io, fmt::format("{}: {}", what, error_text(errno))};
}

base::Result<base::FileDescriptor> listen_in_range(SocketAddress at, std::uint16_t first_port,
                                                   std::uint16_t last_port) {
  for (unsigned port = first_port; port <= std::max<unsigned>(first_port, last_port); ++port) {
    auto fd = base::kept_from_children(socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
    if (!fd) return io_error("cannot make a TCP socket");
    if (at.family() == AF_INET6) set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);  // the port of a job that has just ended is free again
    at.set_port(static_cast<std::uint16_t>(port));
    if (bind(fd.get(), at.get(), at.size()) == 0 && listen(fd.get(), backlog) == 0) return fd;
    if (errno != EADDRINUSE) return io_error(fmt::format("cannot listen at {}", at.text()));
  }
  return base::Error{
      base::ErrorCode::exhausted,
      fmt::format("every TCP port from {} to {} of {} is taken, and each rank of a host needs one: give a wider "
                  "range (comm.ports)",
                  first_port, last_port, at.host())};
}

SocketAddress bound_address(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return SocketAddress::any(AF_INET, 0);
  return SocketAddress::of(reinterpret_cast<const sockaddr*>(&storage));
}

std::string remote_text(int fd, bool with_port) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "an unknown address";
  const SocketAddress address = SocketAddress::of(reinterpret_cast<const sockaddr*>(&storage)).unmapped();
  return with_port ? address.text() : address.host();
}

base::FileDescriptor begin_connecting(const SocketAddress& to, const ConnectOptions& options, int& error) {
  auto fd = base::kept_from_children(socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd) {
    error = errno;
    return {};
  }
  prepare_connection(fd.get(), options.send_buffer_bytes);
  if (options.within_host) avoid_pacing(fd.get());
  if (options.from != nullptr && options.from->family() == to.family()) {
    // The port is chosen when connecting, so that many connections may share one. An address that has gone is no reason
    // to fail.
    set(fd.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    SocketAddress source = *options.from;
    source.set_port(0);
    (void)bind(fd.get(), source.get(), source.size());
  }
  if (connect(fd.get(), to.get(), to.size()) == 0 || errno == EINPROGRESS) return fd;
  error = errno;
  return {};
}

int pending_error(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

void reset_when_closed(int fd) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

Connecting connecting_state(int fd, int& error) {
  error = pending_error(fd);
  if (error != 0) return Connecting::failed;
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) == 0) return Connecting::yes;
  error = errno;
  return error == ENOTCONN ? Connecting::pending : Connecting::failed;
}

void prepare_connection(int fd, std::size_t send_buffer_bytes) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_send_buffer(fd, send_buffer_bytes);
  set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, most_unsent_bytes);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 10);
}

std::string congestion_control(int fd) {
  char name[16] = {};  // TCP_CA_NAME_MAX
  socklen_t size = sizeof name;
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) != 0) return {};
  return {name, strnlen(name, sizeof name)};
}

void set_congestion_control(int fd, const std::string& name) {
  (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size()));
}

void avoid_pacing(int fd) { set_congestion_control(fd, "reno"); }

bool stays_within_host(int fd) {
  sockaddr_storage remote{};
  socklen_t size = sizeof remote;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&remote), &size) != 0) return false;
  return SocketAddress::of(reinterpret_cast<const sockaddr*>(&remote)).host() == bound_address(fd).host();
}

void set_probe_pause(int fd, unsigned seconds) { set(fd, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(seconds)); }

void set_send_buffer(int fd, std::size_t bytes) {
  set(fd, SOL_SOCKET, SO_SNDBUF, static_cast<int>(std::min<std::size_t>(bytes, std::size_t{1} << 29)));
}

void set_receive_low_water(int fd, std::size_t bytes) { set(fd, SOL_SOCKET, SO_RCVLOWAT, static_cast<int>(bytes)); }

namespace {

/// The kernel's information about a socket; 0 for what it does not report.
tcp_info info_of(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return info;
}

}  // namespace

Carriage carriage_of(int fd) {
  const tcp_info info = info_of(fd);
  return {.bytes_per_ns = static_cast<double>(info.tcpi_delivery_rate) * 1e-9,
          .round_trip_ns = std::int64_t{info.tcpi_rtt} * 1000};
}

Delivery delivery_of(int fd) {
  const tcp_info info = info_of(fd);
  // Any acknowledgement resets both counts: a stopped process's host answers each window probe, a dead one none.
  return {.outstanding = info.tcpi_unacked > 0 || info.tcpi_probes > 0,
          .unanswered = info.tcpi_retransmits + info.tcpi_probes >= 2};
}

}  // namespace tandem::comm::internal
