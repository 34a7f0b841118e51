// tandem/comm/bootstrap/socket.cpp: getaddrinfo, and poll with what is left of the time.
#include "tandem/comm/bootstrap/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <thread>

#include <fmt/core.h>

namespace tandem::comm::internal {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds first_pause(5), longest_pause(200);
constexpr int backlog = 1024;  // many ranks start at the same moment

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Result<Addresses> resolve(const HostPort& where, int type) {
  addrinfo hints{};
  hints.ai_socktype = type;
  hints.ai_flags = AI_NUMERICSERV | (where.host.empty() ? AI_PASSIVE : 0);
  addrinfo* list = nullptr;
  const std::string port = std::to_string(where.port);
  const int code = getaddrinfo(where.host.empty() ? nullptr : where.host.c_str(), port.c_str(), &hints, &list);
  if (code != 0) {
    const char* reason = code == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(code);
    return Error{ErrorCode::not_found, fmt::format("the host {} has no known address: {}", where.host, reason)};
  }
  return Addresses(list);
}

Error system_error(std::string_view what, int code) { return {ErrorCode::io, fmt::format("{}: {}", what, std::strerror(code))}; }

/// poll() until something happens; false at the deadline.
bool wait_for(int socket, short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    pollfd waited{socket, events, 0};
    const int count = poll(&waited, 1, static_cast<int>(std::clamp<long long>(left, 0, 1'000'000)));
    if (count > 0) return true;
    if (count == 0 && left <= 0) return false;
  }
}

}  // namespace

/// A rank that waits for hours before it meets a new peer must not be forgotten by a firewall, nor wait for a dead host.
void notice_dead_host(int socket) {
  const auto set = [&](int level, int option, int value) { (void)setsockopt(socket, level, option, &value, sizeof value); };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 20'000);
}

namespace {

/// A connected socket, or errno.
Result<base::FileDescriptor> connect_once(const addrinfo& address, Deadline deadline) {
  base::FileDescriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return system_error("no socket", errno);
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return system_error("connect", errno);
    if (!wait_for(socket.get(), POLLOUT, deadline)) return system_error("connect", ETIMEDOUT);
    int code = 0;
    socklen_t bytes = sizeof code;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &bytes);
    if (code != 0) return system_error("connect", code);
  }
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  notice_dead_host(socket.get());
  return socket;
}

std::string numeric(const sockaddr_storage& address, socklen_t bytes, bool with_port) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), bytes, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "unknown";
  if (!with_port) return host;
  return HostPort{host, static_cast<std::uint16_t>(std::stoi(port))}.text();
}

std::string own_name(int socket) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return "unknown";
  return numeric(address, bytes, false);
}

/// Listens at `address`, or at every address of its family when this machine does not have that one.
Result<Listener> listen_once(addrinfo& address) {
  base::FileDescriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return system_error("no socket", errno);
  const int on = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  int failed = bind(socket.get(), address.ai_addr, address.ai_addrlen);
  if (failed != 0 && errno == EADDRNOTAVAIL) {
    if (address.ai_family == AF_INET) reinterpret_cast<sockaddr_in*>(address.ai_addr)->sin_addr.s_addr = htonl(INADDR_ANY);
    else reinterpret_cast<sockaddr_in6*>(address.ai_addr)->sin6_addr = in6addr_any;
    failed = bind(socket.get(), address.ai_addr, address.ai_addrlen);
  }
  if (failed != 0 || listen(socket.get(), backlog) != 0) return system_error("listen", errno);
  sockaddr_storage bound{};
  socklen_t bytes = sizeof bound;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &bytes) != 0) return system_error("listen", errno);
  const auto port = bound.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(bound).sin_port
                                               : reinterpret_cast<sockaddr_in6&>(bound).sin6_port;
  return Listener{std::move(socket), ntohs(port)};
}

}  // namespace

std::string HostPort::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

Result<HostPort> parse_host_port(std::string_view text, std::string_view origin) {
  const auto colon = text.rfind(':');
  HostPort parsed;
  const std::string_view port = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  std::string_view host = text.substr(0, std::min(colon, text.size()));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), parsed.port);
  if (host.empty() || error != std::errc() || end != port.data() + port.size() || parsed.port == 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} is '{}', which is no HOST:PORT with a port from 1 to 65535", origin, text)};
  }
  parsed.host = host;
  return parsed;
}

Result<Listener> listen_at(const HostPort& where) {
  auto addresses = resolve(where, SOCK_STREAM);
  if (!addresses) return addresses.error();
  Error last{ErrorCode::io, "no address"};
  for (addrinfo* address = addresses.value().get(); address != nullptr; address = address->ai_next) {
    auto listener = listen_once(*address);
    if (listener) return listener;
    last = listener.error();
  }
  const std::string place = where.host.empty() ? fmt::format("port {}", where.port) : where.text();
  return Error{last.code, fmt::format("cannot listen at {}: {}", place, last.message)};
}

Result<TimedSocket> TimedSocket::connect(const HostPort& where, Deadline deadline) {
  std::string last = "no time left";
  for (milliseconds pause = first_pause;; pause = std::min(2 * pause, longest_pause)) {
    auto addresses = resolve(where, SOCK_STREAM);
    if (!addresses) last = addresses.error().message;
    else
      for (addrinfo* address = addresses.value().get(); address != nullptr; address = address->ai_next) {
        auto socket = connect_once(*address, deadline);
        if (socket) return TimedSocket(std::move(socket).value());
        last = socket.error().message;
      }
    if (steady_clock::now() + pause >= deadline) break;
    std::this_thread::sleep_for(pause);
  }
  return Error{ErrorCode::exhausted, fmt::format("nobody answers at {}: {}", where.text(), last)};
}

Result<void> TimedSocket::send(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) bytes.remove_prefix(static_cast<std::size_t>(count));
    else if (errno == EAGAIN) {
      if (!wait_for(socket_.get(), POLLOUT, deadline)) return Error{ErrorCode::exhausted, "no time left to send"};
    } else if (errno != EINTR) {
      return system_error("send", errno);
    }
  }
  return {};
}

Result<bool> TimedSocket::receive(std::string& bytes, Deadline deadline) {
  char buffer[16384];
  for (;;) {
    const ssize_t count = recv(socket_.get(), buffer, sizeof buffer, 0);
    if (count > 0) return bytes.append(buffer, static_cast<std::size_t>(count)), true;
    if (count == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    if (errno == EAGAIN && !wait_for(socket_.get(), POLLIN, deadline))
      return Error{ErrorCode::exhausted, "no answer in time"};
  }
}

void TimedSocket::shut_down() noexcept { (void)::shutdown(socket_.get(), SHUT_RDWR); }

std::string TimedSocket::own_address() const { return own_name(socket_.get()); }

Result<std::string> own_address_towards(const std::string& host) {
  const HostPort anywhere{host, 9};  // connecting a datagram socket chooses the route and sends nothing
  auto addresses = resolve(anywhere, SOCK_DGRAM);
  if (!addresses) return addresses.error();
  int reason = 0;
  for (const addrinfo* address = addresses.value().get(); address != nullptr; address = address->ai_next) {
    const base::FileDescriptor socket(::socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket && ::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0) return own_name(socket.get());
    reason = errno;
  }
  return system_error(fmt::format("no route to the host {}", host), reason);
}

std::string peer_name(int socket) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return "an unknown address";
  return numeric(address, bytes, true);
}

}  // namespace tandem::comm::internal
