// tandem/clock/offset.hpp: the offset between two clocks from a series of ping-pongs.
//
// Mathematics. Let theta(t) = time of the other clock - t at the instant when ours shows t. A message leaves when ours
// shows `send`, the other side reads its clock once (`remote`), and the answer is here when ours shows `receive`. The
// reading took place while ours showed some t in [send, receive], whatever each way took, so that
//
//     remote - receive  <=  theta(t)  <=  remote - send.                                                                   (1)
//
// The rates of two clocks differ by at most rho: |theta(t) - theta(t0)| <= rho |t - t0|. With t0 the middle of the
// shortest round trip, d = max(|send - t0|, |receive - t0|), and e the error of reading a clock, each ping-pong gives
//
//     remote - receive - rho d - e  <=  theta(t0)  <=  remote - send + rho d + e.                                           (2)
//
// The estimate is the middle of the intersection of the kept intervals, and its error at most half the width. The bound
// assumes nothing on symmetry. The middle does: if one way always takes a longer than the other, it is wrong by a/2,
// which no program can see; since a < receive - send, this remains within the bound. (Thesis 3.4.2 keeps the shortest
// round trip alone: one interval.)
//
// Example: two ping-pongs (send, remote, receive) = (0, 1050, 100) and (200, 1290, 320), rho = e = 0: [950, 1050] and
// [970, 1090], so theta(50) = 1010, wrong by at most 40.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tandem::clock {

/// One message to the other clock's owner and its answer. `send_ns` and `receive_ns` are ours, `remote_ns` is the
/// other's.
struct PingPong {
  std::int64_t send_ns = 0;
  std::int64_t remote_ns = 0;
  std::int64_t receive_ns = 0;

  std::int64_t round_trip_ns() const noexcept { return receive_ns - send_ns; }
};

/// The other clock was ahead of ours by `offset_ns`, within `error_ns`, when ours showed `local_ns`.
struct OffsetPoint {
  std::int64_t local_ns = 0;
  std::int64_t offset_ns = 0;
  std::int64_t error_ns = 0;

  friend bool operator==(const OffsetPoint&, const OffsetPoint&) = default;
};

struct OffsetOptions {
  double keep = 0.5;          ///< share of the samples, shortest round trips first; at least one is kept
  double rate_limit = 500e-6;  ///< rho: by how much the clocks' rates differ at most (NTP assumes the same 500 ppm)
  std::int64_t reading_ns = 5;  ///< e: most distance of a stamp from its instant
};

/// Estimates the offset by (2). When the kept intervals have no common point (a clock was set, or a limit does not
/// hold), the shortest round trip decides alone. Empty without samples, or when no sample ends after it began.
std::optional<OffsetPoint> estimate_offset(std::span<const PingPong> samples, const OffsetOptions& options = {});

}  // namespace tandem::clock
