// tandem/comm/bootstrap/socket.hpp: TCP sockets for start-up: names, listening, and calls that wait until a deadline at most.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"

namespace tandem::comm::internal {

/// "name:1234", "10.0.0.1:1234", "[::1]:1234" for people and for environment variables.
struct HostPort {
  std::string host;
  std::uint16_t port = 0;

  std::string text() const;
};

/// `origin` names the text in messages. Errors: invalid_argument.
base::Result<HostPort> parse_host_port(std::string_view text, std::string_view origin);

struct Listener {
  base::FileDescriptor socket;
  std::uint16_t port = 0;
};

/// Listens at the address of `host`, or at all of this machine's when `host` is empty or is an address that others know this
/// machine by but that it does not have itself. Port 0: any free one. The socket does not block. Errors: io, not_found (no such
/// name).
base::Result<Listener> listen_at(const HostPort& where);

using Deadline = std::chrono::steady_clock::time_point;

/// A connection whose calls wait until a deadline at most. Sends may be mixed with receives of another thread; otherwise not
/// thread-safe.
class TimedSocket {
 public:
  /// Tries again, with pauses, while nobody listens there yet or the name is not known yet. Errors: exhausted (time), with the
  /// last reason.
  static base::Result<TimedSocket> connect(const HostPort& where, Deadline deadline);

  /// Errors: io, exhausted (time).
  base::Result<void> send(std::string_view bytes, Deadline deadline);
  /// Waits for some bytes and appends them; false at the end of the stream (also when the other side broke it off).
  /// Errors: exhausted (time).
  base::Result<bool> receive(std::string& bytes, Deadline deadline);
  /// Ends what waits in `receive`, also of another thread: it finds the end of the stream.
  void shut_down() noexcept;
  /// The address of this end, without port: one that the other side can reach.
  std::string own_address() const;

 private:
  explicit TimedSocket(base::FileDescriptor socket) : socket_(std::move(socket)) {}
  base::FileDescriptor socket_;
};

/// The kernel ends this TCP connection when the other host has not answered for 20 s.
void notice_dead_host(int socket);

/// This machine's address that packets to `host` leave from; nothing is sent. Errors: not_found, io (no route).
base::Result<std::string> own_address_towards(const std::string& host);

/// "10.0.0.1:4711": the other end of a connected socket, for messages.
std::string peer_name(int socket);

}  // namespace tandem::comm::internal
