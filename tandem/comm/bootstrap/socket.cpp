// tandem/comm/bootstrap/socket.cpp: listeners, and poll with what is left of the time.
#include "tandem/comm/bootstrap/socket.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fmt/core.h>

#include "tandem/base/fork.hpp"
#include "tandem/comm/bootstrap/host_address.hpp"

namespace tandem::comm::internal {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int backlog = 4096;  // many ranks start at the same moment; the system cuts it to net.core.somaxconn

Error system_error(std::string_view what, int code) {
  return {ErrorCode::io, fmt::format("{}: {}", what, base::system_error_text(code))};
}

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

/// Turns on keepalives: a firewall must not forget a rank that waits for hours, and a dead host must be noticed.
void notice_dead_host(int socket) {
  const auto set = [&](int level, int option, int value) {
    (void)setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 20'000);
}

namespace {

/// Listens at an address; `reason` gets errno of a failure. IPv6's wildcard address covers IPv4, too.
Result<Listener> listen_once(const HostAddress& address, int& reason) {
  const auto failed = [&reason] { return system_error("listen", reason = errno); };
  auto socket = base::kept_from_children(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return failed();
  const int on = 1, off = 0;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AF_INET6) setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (bind(socket.get(), address.get(), address.bytes) != 0 || listen(socket.get(), backlog) != 0) return failed();
  const auto bound = own_address(socket.get());
  if (!bound) return bound.error();
  return Listener{std::move(socket), bound.value().port()};
}

/// Listens at all addresses of this machine; where IPv6 is switched off, at those of IPv4.
Result<Listener> listen_everywhere(std::uint16_t port) {
  int reason = 0;
  auto listener = listen_once(HostAddress::any(AF_INET6, port), reason);
  if (listener || (reason != EAFNOSUPPORT && reason != EADDRNOTAVAIL)) return listener;
  return listen_once(HostAddress::any(AF_INET, port), reason);
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

Result<std::vector<HostPort>> parse_host_ports(std::string_view text, std::string_view origin) {
  std::vector<HostPort> places;
  for (std::size_t first = 0; first <= text.size();) {
    const std::size_t end = std::min(text.find(',', first), text.size());
    auto place = parse_host_port(text.substr(first, end - first), origin);
    if (!place) return place.error();
    places.push_back(std::move(place).value());
    first = end + 1;
  }
  return places;
}

std::string text_of(const std::vector<HostPort>& places) {
  std::string text;
  for (const HostPort& place : places) {
    if (!text.empty()) text += ',';
    text += place.text();
  }
  return text;
}

Result<Listener> listen_at(const HostPort& where) {
  int reason = EADDRNOTAVAIL;
  auto listener = Result<Listener>(Error{});
  const auto address = where.host.empty() ? Result<HostAddress>(Error{}) : numeric_address(where);
  if (address) listener = listen_once(address.value(), reason);
  if (!listener && reason == EADDRNOTAVAIL) listener = listen_everywhere(where.port);
  if (listener) return listener;
  const std::string place = where.host.empty() ? fmt::format("port {}", where.port) : where.text();
  return Error{listener.error().code, fmt::format("cannot listen at {}: {}", place, listener.error().message)};
}

HostPort place_on_this_host(const Listener& listener) {
  const auto bound = own_address(listener.socket.get());
  if (!bound || bound.value().is_any()) return {"127.0.0.1", listener.port};
  return {bound.value().host(), listener.port};
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

Result<std::vector<std::string>> own_addresses_towards(const std::string& host) {
  // Connecting a datagram socket chooses the route and sends nothing.
  const auto addresses = resolve({host, 9});
  if (!addresses) return addresses.error();
  int reason = 0;
  std::vector<std::string> names, of_one_link;
  for (const HostAddress& address : addresses.value()) {
    const base::FileDescriptor socket(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket || ::connect(socket.get(), address.get(), address.bytes) != 0) {
      reason = errno;
      continue;
    }
    const auto own = own_address(socket.get());
    if (!own) return own.error();
    std::vector<std::string>& list = own.value().is_of_one_link() ? of_one_link : names;
    std::string name = own.value().host();
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(std::move(name));
  }
  if (names.empty()) names = std::move(of_one_link);
  if (names.empty()) return system_error(fmt::format("no route to the host {}", host), reason);
  return names;
}

std::string peer_name(int socket) {
  HostAddress address;
  address.bytes = sizeof address.storage;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.bytes) != 0)
    return "an unknown address";
  return address.text();
}

}  // namespace tandem::comm::internal
