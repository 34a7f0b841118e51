// tandem/comm/transport/tcp/tcp_speed.cpp: how fast a connection and the network are, and how much the kernel gets at
// once.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "tandem/comm/transport/tcp/tcp_transport.hpp"

namespace tandem::comm::internal {

namespace {

constexpr std::uint64_t judged_bytes = std::uint64_t{256} << 10;    // more than a rate limiter passes at once
constexpr std::uint64_t one_unit_bytes = std::uint64_t{64}
                                         << 10;  // by which the kernel exceeds its bound to finish a unit
constexpr std::uint64_t carried_bytes = std::uint64_t{128}
                                        << 10;  // twice what a rate limiter is likely to pass at once
constexpr double held_ns = 1'000'000;  // an unproven connection's send buffer lasts this long
constexpr std::uint64_t fast_ns_per_byte = 4;  // see `TcpOptions::first_send_buffer_bytes`

}  // namespace

// While a connection waits to write, the kernel sends; what it takes afterwards is what it has sent meanwhile. What it
// takes without any waiting (its buffer, the first time) makes the network look faster than it is, by less than a
// factor of two.
void TcpTransport::judge_speed(Connection& connection) {
  if (connection.within_host) return;
  const std::uint64_t bytes = connection.writer.written_bytes() - connection.judged_at_bytes;
  if (bytes < judged_bytes) return;
  judged(connection, fast_ns_per_byte * bytes >= static_cast<std::uint64_t>(connection.blocked_ns));
}

// For connections that are not fast. Called in the midst of many bytes: a rate limiter's burst is over then, and round
// trips include the queue behind the limiter. The kernel's rate may still be that of a burst, so the rate is at most
// the least that the kernel holds, per round trip.
void TcpTransport::note_carriage(Connection& connection) {
  connection.carried_at_bytes = connection.writer.written_bytes();
  const Carriage carriage = carriage_of(connection.socket.get());
  const double round_trip = static_cast<double>(std::max<std::int64_t>(carriage.round_trip_ns, 1));
  const double rate =
      std::min(carriage.bytes_per_ns, static_cast<double>(options_.first_send_buffer_bytes) / round_trip);
  if (rate > 0) bytes_per_ns_ = bytes_per_ns_ > 0 ? bytes_per_ns_ * 0.75 + rate * 0.25 : rate;
  const auto wanted = std::bit_floor(static_cast<std::size_t>(rate * held_ns));
  set_buffer(connection, std::clamp(wanted, options_.first_send_buffer_bytes, options_.send_buffer_bytes));
}

void TcpTransport::set_buffer(Connection& connection, std::size_t bytes) {
  if (bytes == connection.send_buffer_bytes) return;
  connection.send_buffer_bytes = bytes;
  set_send_buffer(connection.socket.get(), bytes);
}

// A fast connection may never wait, for instance in a ping-pong. What was written before the last poll had left by
// then, except for what the kernel can hold.
void TcpTransport::look_for_speed(Connection& connection) {
  if (connection.writer.written_bytes() - connection.carried_at_bytes >= carried_bytes) note_carriage(connection);
  if (connection.looked_at_poll == poll_number_) return;
  connection.looked_at_poll = poll_number_;
  const std::uint64_t bytes = connection.writer.written_bytes() - connection.looked_from_bytes;
  const auto took_ns = static_cast<std::uint64_t>(now_ns_ - connection.looked_from_ns);
  const std::uint64_t held_bytes = 2 * connection.send_buffer_bytes + one_unit_bytes;
  if (bytes >= held_bytes + judged_bytes && took_ns <= fast_ns_per_byte * judged_bytes) return judged(connection, true);
  if (bytes > 0 && took_ns <= fast_ns_per_byte * judged_bytes) return;
  connection.looked_from_bytes += bytes;
  connection.looked_from_ns = now_ns_;
}

void TcpTransport::judged(Connection& connection, bool fast) {
  connection.judged_at_bytes = connection.writer.written_bytes();
  connection.blocked_ns = 0;
  connection.fast = fast;
  connection.writer.set_burst(fast ? SIZE_MAX : options_.burst_bytes);
  if (fast) set_buffer(connection, std::min(2 * connection.send_buffer_bytes, options_.send_buffer_bytes));
  else note_carriage(connection);
}

}  // namespace tandem::comm::internal
