// tandem/clock/drift_model.hpp: the offset between two clocks over time, from points with error bounds and a limit on
// the change of rate.
//
// Mathematics. Let theta(t) be the other clock's time minus ours when ours shows t, and let its rate change by at most
// alpha per second: |theta''| <= alpha. Around any instant t, with x = theta(t), r = theta'(t), Taylor gives for every
// point (t_i, o_i, w_i)
//
//     |x + r (t_i - t) - o_i|  <=  w_i + alpha (t_i - t)^2 / 2,      |r| <= rho.                                            (1)
//
// Each point is a strip in the plane of (x, r), and what is known is the convex polygon that they have in common (the
// method of convex hulls of Duda et al., turned into its dual, where alpha only widens strips): between points, outside
// of them, near them alike, for the polygon is made for that t.
//
// For extrapolation from the last point t_n on: with x0, r0 anywhere and e, e' the distances from there to the farthest
// x and r of the polygon for t_n,
//
//     |theta(t_n + s) - x0 - r0 s|  <=  e + e' |s| + alpha s^2 / 2,                                                         (2)
//
// which is a `GlobalClock`. The middles would make e and e' least, but not the errors: the polygon treats all offsets
// in a strip alike, while the middle of a short round trip is nearly right and that of a long one may be anywhere. So
// x0 and r0 are those of the parabola with the least
//
//     sum_i ((x + r d_i + c d_i^2 / 2 - o_i) / s_i)^2 + (r / rho)^2 + (c / alpha)^2,    d_i = t_i - t_n,                    (3)
//     s_i = w / 8 + w_i - w + alpha d_i^2 / 8,    w = min_j w_j,
//
// or, where the polygon does not contain them, the nearest of its extents. Round trips as short as the shortest are
// asymmetric by little (w/8, from experience). Those longer by 2 (w_i - w) may be so by one way alone. And c follows a
// rate that changes, for as long as its change is the same. This costs the bound some percent.
// The offset at any t is the x of the same fit around t.
//
// A point that leaves the polygon empty is a *suspect*: its measurement may have been disturbed by more than it says,
// or the limits do not hold. The next point tells. If that one agrees with the points before the suspect, the suspect
// was wrong and is dropped; nothing else changes. Otherwise the suspect was right. If a larger alpha, at most 16 times,
// makes all points agree, it was too small and is raised for good, with a margin; else a clock was set, and all points
// before the suspect are dropped.
//
// Until then, from the last point that is no suspect on, the error includes both: with (t_s, o_s, w_s) the suspect,
//
//     error(t)  >=  |theta(t) - o_s| + w_s + rho |t - t_s|                                                                  (4)
//
// where theta(t) is the offset of the other points. So one wrong measurement widens the error of its own interval.
//
// Example: points (0 s, 0, 100 ns) and (1 s, 0, 100 ns) with alpha = 0: r is in [-200, 200] ns/s at t = 1 s; one second
// later the error is 100 + 200 = 300 ns. With alpha = 0.2 ppm/s the first strip is wider by 100 ns, and the error 100 +
// 300 + 100 = 500 ns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "tandem/clock/global_clock.hpp"
#include "tandem/clock/offset.hpp"

namespace tandem::clock {

/// Assumed limits of a pair of clocks. Crystals keep within 100 ppm of their nominal rate and change by some 0.01 ppm
/// per second at most when the temperature does.
struct DriftLimits {
  double rate = 500e-6;               ///< rho: most difference of rates
  double rate_change_per_s = 0.2e-6;  ///< alpha: most change of that difference in a second
};

/// Points of one pair of clocks in order of time, and what follows from them. Not thread-safe; a value.
class DriftModel {
 public:
  static constexpr std::size_t usual_points = 32;

  /// Keeps the last `most_points`: estimates cost linear time in their number.
  explicit DriftModel(const DriftLimits& limits = {}, std::size_t most_points = usual_points);

  /// Takes a point later than the ones before (assertion). False: it contradicts them within the limits, so that it is
  /// a suspect, or alpha was raised, or they were dropped; until then the bounds may have been wrong, and the next
  /// point should come soon.
  bool add(const OffsetPoint& point);
  void clear() noexcept {
    points_.clear();
    suspect_.reset();
  }

  bool empty() const noexcept { return points_.empty(); }
  /// The latest point, perhaps a suspect. At least one exists.
  const OffsetPoint& last() const { return suspect_ ? *suspect_ : points_.back(); }
  /// The number of points, including a suspect.
  std::size_t point_count() const noexcept { return points_.size() + (suspect_ ? 1 : 0); }
  /// The points without a suspect.
  const std::deque<OffsetPoint>& points() const noexcept { return points_; }
  /// The limits as given, or as points have raised them.
  const DriftLimits& limits() const noexcept { return limits_; }

  /// The offset when our clock shows `local_ns`, by (3), and its error, by (1), with a suspect (4). At least one point
  /// exists.
  OffsetPoint at(std::int64_t local_ns) const;
  /// The line (2) from the last point on. At least one point exists.
  GlobalClock line() const;

  /// Converts our clock's time to the other's by `at`.
  GlobalTime to_global(std::int64_t local_ns) const;

 private:
  bool add_if_it_agrees(const OffsetPoint& point);
  bool add_in_any_case(const OffsetPoint& point);
  bool agrees_with(const DriftLimits& limits) const;
  double least_error_ns() const;

  DriftLimits limits_;
  std::size_t most_points_;
  std::deque<OffsetPoint> points_;
  std::optional<OffsetPoint> suspect_;  ///< later than all of these, of which at least one exists
};

}  // namespace tandem::clock
