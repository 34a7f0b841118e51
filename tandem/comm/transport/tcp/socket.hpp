// tandem/comm/transport/tcp/socket.hpp: the system calls of stream sockets, non-blocking, with readable errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/transport/tcp/address.hpp"

namespace tandem::comm::internal {

/// The text of a system's error number: "Connection refused".
std::string error_text(int error);
/// Error io: "WHAT: " and the text of `errno`.
base::Error io_error(std::string_view what);

/// Listens at the first free port of the range (0, 0: at any) of `at`, whose own port is ignored. A listener on all
/// IPv6 addresses takes IPv4 as well. Errors: exhausted (all ports are taken), io.
base::Result<base::FileDescriptor> listen_in_range(SocketAddress at, std::uint16_t first_port, std::uint16_t last_port);

/// The address that a socket is bound to.
SocketAddress bound_address(int fd);
/// The address at the other end; "an unknown address" when that has gone.
std::string remote_text(int fd, bool with_port);

/// How to connect.
struct ConnectOptions {
  const SocketAddress* from = nullptr;  ///< its port is ignored; null: any
  std::size_t send_buffer_bytes = 0;
  bool within_host = false;             ///< `avoid_pacing`
};
/// Begins to connect. The socket becomes writable when connecting has succeeded or failed. Empty: `error` has the
/// system's number.
base::FileDescriptor begin_connecting(const SocketAddress& to, const ConnectOptions& options, int& error);
enum class Connecting { yes, pending, failed };
/// Whether a connection that was begun exists; `error` gets the system's number when it failed.
Connecting connecting_state(int fd, int& error);

/// Sets what every connection needs: no delay of small packets, a bounded send buffer, and probes of an idle peer's
/// host. TCP_USER_TIMEOUT stays off: it also ends connections to a stopped process, whose host answers with a closed
/// window.
void prepare_connection(int fd, std::size_t send_buffer_bytes);
void set_send_buffer(int fd, std::size_t bytes);

/// The kernel's congestion control of a socket, such as "bbr".
std::string congestion_control(int fd);
void set_congestion_control(int fd, const std::string& name);
/// Chooses a congestion control without pacing, which every system has and allows, for connections whose packets stay
/// within the host: no packet is lost there, and bbr's pacing (a timer per packet) takes up to half of the speed. Call
/// it before the socket is connected, since pacing that has begun does not end. An accepted socket takes its
/// listener's.
void avoid_pacing(int fd);
/// Whether both ends of a connection have the same address, so that its packets do not leave the host.
bool stays_within_host(int fd);
/// Sets the idle seconds before the first probe; 1 at first.
void set_probe_pause(int fd, unsigned seconds);
/// Sets the number of bytes from which an epoll set reports the socket readable. The end of the connection makes it
/// readable in any case, and reading takes what is there.
void set_receive_low_water(int fd, std::size_t bytes);

/// Why the connection has failed, or 0; each failure is returned once.
int pending_error(int fd);
/// Makes closing reset the connection: no more bytes leave, and the peer learns it at once.
void reset_when_closed(int fd);

/// What the kernel knows about the bytes that it took.
struct Delivery {
  bool outstanding = false;   ///< some are not acknowledged yet
  bool unanswered = false;  ///< several repetitions or window probes in a row got no answer at all from the peer's host
};
Delivery delivery_of(int fd);
/// What the network has just carried, by the kernels' account, which does not depend on whether the processes had a
/// core.
struct Carriage {
  double bytes_per_ns = 0;         ///< delivery rate, perhaps of a short burst; 0: not known
  std::int64_t round_trip_ns = 0;  ///< recent average; 0: not known
};
Carriage carriage_of(int fd);

}  // namespace tandem::comm::internal
