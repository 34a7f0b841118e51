// tandem/comm/bootstrap/connecting.cpp: connections that several addresses of a server compete for.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "tandem/base/fork.hpp"
#include "tandem/comm/bootstrap/address_race.hpp"
#include "tandem/comm/bootstrap/host_address.hpp"
#include "tandem/comm/bootstrap/socket.hpp"

namespace tandem::comm::internal {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Whether an error of connect() says that no interface or route leads there. "No route to host" says only that nobody
/// answers.
bool lasts(int code, int family) {
  if (code == EADDRNOTAVAIL) return family == AF_INET6;  // IPv4: all ports of this machine are in use now
  return code == ENETUNREACH || code == ENETDOWN || code == EAFNOSUPPORT || code == EACCES || code == EPERM ||
         code == EINVAL;
}

/// Whether the kernel has connected the socket to itself. This can happen when nobody listens at a port from the range
/// of outgoing connections.
bool is_its_own_peer(int socket) {
  const auto own = own_address(socket);
  HostAddress other;
  other.bytes = sizeof other.storage;
  return own.ok() && getpeername(socket, reinterpret_cast<sockaddr*>(&other.storage), &other.bytes) == 0 &&
         own.value() == other;
}

/// One call of `TimedSocket::connect`: the sockets under way, and the names that are looked up again.
class Connecting {
 public:
  explicit Connecting(const std::vector<HostPort>& places) : places_(places) {}
  Result<base::FileDescriptor> run(Deadline deadline);

 private:
  struct Attempt {
    base::FileDescriptor socket;
    Deadline until;
  };
  void look_up(Deadline now);
  void take(const std::vector<HostAddress>& found);
  void begin(std::size_t number, Deadline now);
  void fail(std::size_t number, int code, Deadline now);
  std::optional<base::FileDescriptor> winner(Deadline now);
  void wait_until(Deadline wake);
  std::optional<Error> reason_to_stop(Deadline now, Deadline deadline) const;

  static constexpr milliseconds first_name_pause{5}, longest_name_pause{200};
  static constexpr std::chrono::seconds known_name_pause{10};  ///< a look-up may block, which delays attempts

  const std::vector<HostPort>& places_;
  std::vector<HostAddress> addresses_;
  AddressRace race_;
  std::map<std::size_t, Attempt> under_way_;  ///< by number of the address
  Deadline look_up_at_ = Deadline::min();
  milliseconds name_pause_ = first_name_pause;
  std::string last_ = "no time left";
  bool has_no_name_ = false;        ///< no address is known, and this machine has no network
  std::optional<Error> no_socket_;
};

void Connecting::look_up(Deadline now) {
  if (now < look_up_at_) return;
  bool all_known = true;
  std::vector<HostAddress> found;
  for (const HostPort& place : places_) {
    const auto addresses = resolve(place);
    if (addresses) found.insert(found.end(), addresses.value().begin(), addresses.value().end());
    else last_ = addresses.error().message;
    all_known = all_known && addresses.ok();
  }
  if (!found.empty()) take(in_turns(found));
  has_no_name_ = addresses_.empty() && has_no_network();
  look_up_at_ = steady_clock::now() + (all_known ? milliseconds(known_name_pause) : name_pause_);
  name_pause_ = std::min(2 * name_pause_, addresses_.empty() ? longest_name_pause : milliseconds(known_name_pause));
}

void Connecting::take(const std::vector<HostAddress>& found) {
  for (const HostAddress& address : found)
    if (std::find(addresses_.begin(), addresses_.end(), address) == addresses_.end()) addresses_.push_back(address);
  race_.grow(addresses_.size());
}

void Connecting::begin(std::size_t number, Deadline now) {
  const HostAddress& address = addresses_[number];
  auto socket = base::kept_from_children(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) {
    if (errno == EMFILE || errno == ENFILE)
      no_socket_ = Error{ErrorCode::io, "no socket: " + base::system_error_text(errno)};
    return fail(number, errno, now);
  }
  if (::connect(socket.get(), address.get(), address.bytes) != 0 && errno != EINPROGRESS)
    return fail(number, errno, now);
  under_way_[number] = {std::move(socket), now + AddressRace::patience};
}

void Connecting::fail(std::size_t number, int code, Deadline now) {
  const HostAddress& address = addresses_[number];
  last_ = fmt::format("{}: {}", address.text(), base::system_error_text(code));
  under_way_.erase(number);
  race_.failed(number, lasts(code, address.family()) ? AddressRace::Failure::lasts : AddressRace::Failure::may_pass,
               now);
}

/// The socket of an attempt that has succeeded. Notes those that have failed.
std::optional<base::FileDescriptor> Connecting::winner(Deadline now) {
  std::vector<std::pair<std::size_t, int>> failures;
  for (auto& [number, attempt] : under_way_) {
    pollfd state{attempt.socket.get(), POLLOUT, 0};
    int code = 0;
    socklen_t bytes = sizeof code;
    if (poll(&state, 1, 0) > 0) {
      if (getsockopt(state.fd, SOL_SOCKET, SO_ERROR, &code, &bytes) != 0) code = errno;
      if (code == 0 && is_its_own_peer(state.fd)) code = ECONNREFUSED;
      if (code == 0) return std::move(attempt.socket);
      failures.emplace_back(number, code);
    } else if (now >= attempt.until) {
      failures.emplace_back(number, ETIMEDOUT);
    }
  }
  for (const auto& [number, code] : failures) fail(number, code, now);
  return std::nullopt;
}

void Connecting::wait_until(Deadline wake) {
  std::vector<pollfd> waited;
  for (const auto& [number, attempt] : under_way_) {
    waited.push_back({attempt.socket.get(), POLLOUT, 0});
    wake = std::min(wake, attempt.until);
  }
  const auto left = std::chrono::ceil<milliseconds>(wake - steady_clock::now()).count();
  poll(waited.data(), waited.size(), static_cast<int>(std::clamp<long long>(left, 0, 1'000'000)));
}

std::optional<Error> Connecting::reason_to_stop(Deadline now, Deadline deadline) const {
  if (no_socket_) return no_socket_;
  if (has_no_name_) return Error{ErrorCode::io, fmt::format("{}, and this host has no network", last_)};
  if (race_.is_hopeless())
    return Error{ErrorCode::io, fmt::format("no network leads to {}: {}; is its interface up (`ip address`)?",
                                            text_of(places_), last_)};
  if (now >= deadline)
    return Error{ErrorCode::exhausted, fmt::format("nobody answers at {}: {}", text_of(places_), last_)};
  return std::nullopt;
}

Result<base::FileDescriptor> Connecting::run(Deadline deadline) {
  for (;;) {
    const Deadline now = steady_clock::now();
    if (auto socket = winner(now)) return std::move(*socket);
    look_up(now);
    while (const auto number = race_.next(now)) begin(*number, now);
    if (auto error = reason_to_stop(now, deadline)) return *std::move(error);
    wait_until(std::min({deadline, look_up_at_, race_.wake()}));
  }
}

}  // namespace

Result<TimedSocket> TimedSocket::connect(const std::vector<HostPort>& places, Deadline deadline) {
  auto socket = Connecting(places).run(deadline);
  if (!socket) return socket.error();
  const int on = 1;
  setsockopt(socket.value().get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  notice_dead_host(socket.value().get());
  return TimedSocket(std::move(socket).value());
}

}  // namespace tandem::comm::internal
