// tandem/trace/clock_point.hpp: instants that a rank's clock and rank 0's have in common, and the line through them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tandem/trace/event.hpp"

namespace tandem::trace {

/// An instant that two clocks have in common.
struct ClockPoint {
  ClockPointKind kind = ClockPointKind::barrier;
  std::int64_t local_ns = 0;
  std::int64_t reference_ns = 0;
  std::int64_t error_ns = 0;
  std::int64_t late_ns = 0;
};

/// Converts a rank's time to that of rank 0, by the line through the first and the last point at which the clocks were
/// compared:
///
///   reference = local + first.offset + (last.offset - first.offset) (local - first.local) / (last.local - first.local)
///
/// where offset = reference - local. Points come from files, so every value is allowed: results saturate to int64. An
/// immutable value.
class ReferenceLine {
 public:
  enum class Outside {
    extrapolated,  ///< the line continues before the first point and after the last
    held,          ///< there the offset is that of the nearest of the two points
  };

  ReferenceLine() = default;  ///< the identity
  ReferenceLine(const ClockPoint& first, const ClockPoint& last) noexcept;
  /// Uses the barriers among the points if there are any, else all points, in any order. Without points: the identity.
  static ReferenceLine through(std::span<const ClockPoint> points) noexcept;

  std::int64_t to_reference(std::int64_t local_ns, Outside outside = Outside::extrapolated) const noexcept;
  /// Reference nanoseconds per local one.
  double rate() const noexcept;
  /// The greater of the two points' errors in ns; nothing without points.
  std::optional<std::int64_t> error_ns() const noexcept { return error_ns_; }

 private:
  __extension__ using Wide = __int128;

  Wide first_local_ = 0;
  Wide first_offset_ = 0;
  Wide local_span_ = 0;   ///< between the points; 0 when there is only one
  Wide offset_span_ = 0;  ///< growth of the offset in it
  std::optional<std::int64_t> error_ns_;
};

}  // namespace tandem::trace
