// tandem/comm/bootstrap/socket.hpp: TCP sockets for start-up: names, listening, and calls that wait until a deadline at
// most.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"

namespace tandem::comm::internal {

/// A host and a port, "name:1234", "10.0.0.1:1234" or "[::1]:1234" in text.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;

  std::string text() const;
};

/// Parses "HOST:PORT". `origin` names the text in messages. Errors: invalid_argument.
base::Result<HostPort> parse_host_port(std::string_view text, std::string_view origin);

/// "10.0.0.1:4711,[fd00::1]:4711": where one server may be reached, and such a list as text.
base::Result<std::vector<HostPort>> parse_host_ports(std::string_view text, std::string_view origin);
std::string text_of(const std::vector<HostPort>& places);

struct Listener {
  base::FileDescriptor socket;
  std::uint16_t port = 0;
};

/// Listens at `host` when that is a numeric address of this machine. Otherwise at all addresses of this machine, IPv6
/// and IPv4: when `host` is empty; when it is a name, which other hosts may resolve to other addresses than this one;
/// and when it is an address that others know this machine by and that it does not have itself. Port 0: any free one.
/// The socket does not block. Errors: io.
base::Result<Listener> listen_at(const HostPort& where);

/// Where a process of this machine reaches the listener.
HostPort place_on_this_host(const Listener& listener);

using Deadline = std::chrono::steady_clock::time_point;

/// A connection whose calls wait until a deadline at most. Sends may be mixed with receives of another thread;
/// otherwise not thread-safe.
class TimedSocket {
 public:
  /// Connects to one of the places: tries all their addresses side by side (address_race.hpp), and again while nobody
  /// listens there yet or a name is not known yet. Errors: exhausted (time), with the last reason; io, at once: no
  /// network leads to any of the addresses, or this process has no descriptor left.
  static base::Result<TimedSocket> connect(const std::vector<HostPort>& places, Deadline deadline);

  /// Sends all bytes. Errors: io, exhausted (time).
  base::Result<void> send(std::string_view bytes, Deadline deadline);
  /// Waits for some bytes and appends them; false at the end of the stream (also when the other side broke it off).
  /// Errors: exhausted (time).
  base::Result<bool> receive(std::string& bytes, Deadline deadline);
  /// Ends a wait in `receive`, also of another thread: it finds the end of the stream.
  void shut_down() noexcept;

 private:
  explicit TimedSocket(base::FileDescriptor socket) : socket_(std::move(socket)) {}
  base::FileDescriptor socket_;
};

/// The kernel ends this TCP connection when the other host has not answered for 20 s.
void notice_dead_host(int socket);

/// This machine's addresses that packets to the addresses of `host` leave from, without duplicates; nothing is sent.
/// Addresses of one link only (fe80::) are left out when there are others. Errors: not_found, io (no route).
base::Result<std::vector<std::string>> own_addresses_towards(const std::string& host);

/// "10.0.0.1:4711": the other end of a connected socket, for messages.
std::string peer_name(int socket);

}  // namespace tandem::comm::internal
