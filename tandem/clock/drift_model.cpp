// tandem/clock/drift_model.cpp: the polygon of all (offset, rate) that agree with the points.
#include "tandem/clock/drift_model.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tandem/base/assert.hpp"

namespace tandem::clock {
namespace {

/// Largest factor on alpha before a contradiction is taken for a clock that was set.
constexpr double kMostRaise = 16;
/// The least alpha under which the points agree leaves hardly any line: the true one may well be larger.
constexpr double kRaiseMargin = 4;
/// The shares of (3).
constexpr double kLikelyShare = 0.125, kBendShare = 0.25;

/// A corner in the plane of (1): offset in ns relative to a base, rate in ns per ns.
struct Corner {
  double offset, rate;
};
using Polygon = std::vector<Corner>;

/// The strip of a point as seen from t: |x + r distance - middle| <= width.
struct Strip {
  double distance, middle, width;
  double bend;  ///< the part of the width that grows with the distance
  double value(const Corner& corner) const noexcept { return corner.offset + corner.rate * distance - middle; }
};

/// The part of a convex polygon where sign * value <= width (Sutherland and Hodgman, one half-plane).
Polygon clipped(const Polygon& polygon, const Strip& strip, double sign) {
  Polygon kept;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Corner &from = polygon[i], &to = polygon[(i + 1) % polygon.size()];
    const double from_excess = sign * strip.value(from) - strip.width, to_excess = sign * strip.value(to) - strip.width;
    if (from_excess <= 0) kept.push_back(from);
    if ((from_excess < 0 && to_excess > 0) || (from_excess > 0 && to_excess < 0)) {
      const double share = from_excess / (from_excess - to_excess);
      kept.push_back({from.offset + share * (to.offset - from.offset), from.rate + share * (to.rate - from.rate)});
    }
  }
  return kept;
}

Polygon clipped(const Polygon& polygon, const Strip& strip) { return clipped(clipped(polygon, strip, 1), strip, -1); }

/// One strip, cut off at the limits of the rate.
Polygon parallelogram(const Strip& strip, double rate_limit) {
  const auto corner = [&](double side, double rate) {
    return Corner{strip.middle + side * strip.width - rate * strip.distance, rate};
  };
  return {corner(-1, -rate_limit), corner(1, -rate_limit), corner(1, rate_limit), corner(-1, rate_limit)};
}

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
  void take(double value) noexcept { low = std::min(low, value), high = std::max(high, value); }
  /// The nearest possible value (the middle for NaN: too little was known), and the distance of the farthest possible
  /// one from it.
  double nearest(double value) const noexcept {
    return std::isnan(value) ? low + (high - low) / 2 : std::clamp(value, low, high);
  }
  double farthest_from(double value) const noexcept { return std::max(value - low, high - value); }
};

/// The sums of (3), symmetric; seconds instead of ns keep the numbers near each other.
class Fit {
 public:
  /// `best_ns`: the least error of all points.
  Fit(const DriftLimits& limits, double best_ns) : best_ns_(best_ns) {
    const auto prior = [](double limit_ns) { return 1 / std::max(1e-12, limit_ns * limit_ns); };
    left_[1][1] = prior(limits.rate * 1e9);
    left_[2][2] = prior(limits.rate_change_per_s * 1e9);
  }

  void add(const Strip& strip) noexcept {
    const double excess_ns = strip.width - strip.bend - best_ns_;
    const double likely_ns = 1 + kLikelyShare * best_ns_ + excess_ns + kBendShare * strip.bend;
    const double weight = 1 / (likely_ns * likely_ns);
    const double distance_s = strip.distance * 1e-9;
    const double terms[] = {1, distance_s, distance_s * distance_s / 2};
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j <= i; ++j) left_[i][j] += weight * terms[i] * terms[j];
      right_[i] += weight * terms[i] * strip.middle;
    }
  }

  /// (x, r) of the best (x, r, c): elimination of c, then of r.
  Corner best() const noexcept {
    const auto& [top, middle, bottom] = left_;
    const double of_rate = bottom[1] / bottom[2], of_offset = bottom[0] / bottom[2];
    const double rate_rate = middle[1] - of_rate * bottom[1], rate_offset = middle[0] - of_rate * bottom[0];
    const double rate_right = right_[1] - of_rate * right_[2];
    const double offset_offset = top[0] - of_offset * bottom[0] - rate_offset / rate_rate * rate_offset;
    const double offset = (right_[0] - of_offset * right_[2] - rate_offset / rate_rate * rate_right) / offset_offset;
    return {offset, (rate_right - rate_offset * offset) / rate_rate * 1e-9};
  }

 private:
  double best_ns_;
  double left_[3][3] = {}, right_[3] = {};
};

/// The points as seen from one instant. Offsets are relative to `base_ns`, so that doubles have digits to spare.
class View {
 public:
  View(const DriftLimits& limits, std::int64_t local_ns, std::int64_t base_ns, double best_ns = 0)
      : limits_(limits), local_ns_(local_ns), base_ns_(base_ns), fit_(limits, best_ns) {}

  /// Adds a point. False, without effect: nothing would be left.
  bool add(const OffsetPoint& point) {
    const Strip said = strip(point);
    Polygon next = polygon_.empty() ? parallelogram(said, limits_.rate) : clipped(polygon_, said);
    if (next.empty()) return false;
    polygon_ = std::move(next);
    fit_.add(said);
    return true;
  }
  Corner likeliest() const noexcept { return fit_.best(); }
  Extent offsets() const noexcept {
    Extent extent;
    for (const Corner& corner : polygon_) extent.take(corner.offset);
    return extent;
  }
  Extent rates() const noexcept {
    Extent extent;
    for (const Corner& corner : polygon_) extent.take(corner.rate);
    return extent;
  }

 private:
  Strip strip(const OffsetPoint& point) const noexcept {
    const auto distance_ns = static_cast<double>(point.local_ns - local_ns_);
    const double bend_ns = limits_.rate_change_per_s * 1e-9 * distance_ns * distance_ns / 2;
    return {distance_ns, static_cast<double>(point.offset_ns - base_ns_), static_cast<double>(point.error_ns) + bend_ns,
            bend_ns};
  }

  const DriftLimits& limits_;
  std::int64_t local_ns_, base_ns_;
  Polygon polygon_;
  Fit fit_;
};

/// The error of `likely_ns`, from `base_ns` on, at the time of `suspect` if the suspect is right.
double suspected_ns(const OffsetPoint& suspect, std::int64_t base_ns, double likely_ns) noexcept {
  return std::abs(static_cast<double>(suspect.offset_ns - base_ns) - likely_ns) + static_cast<double>(suspect.error_ns);
}

}  // namespace

DriftModel::DriftModel(const DriftLimits& limits, std::size_t most_points)
    : limits_(limits), most_points_(most_points) {
  TANDEM_ASSERT(most_points > 0 && limits.rate > 0 && limits.rate < 0.5 && limits.rate_change_per_s >= 0);
}

bool DriftModel::add(const OffsetPoint& point) {
  TANDEM_ASSERT(points_.empty() || point.local_ns > last().local_ns);
  const std::optional<OffsetPoint> suspect = std::exchange(suspect_, std::nullopt);
  if (add_if_it_agrees(point)) return true;
  if (!suspect) {
    suspect_ = point;
    return false;
  }
  add_in_any_case(*suspect);  // it was right
  add_in_any_case(point);
  return false;
}

/// Adds the point if it agrees. False, without effect: it does not.
bool DriftModel::add_if_it_agrees(const OffsetPoint& point) {
  points_.push_back(point);
  const bool agrees = agrees_with(limits_);
  if (!agrees) points_.pop_back();
  else if (points_.size() > most_points_) points_.pop_front();
  return agrees;
}

/// Adds the point. False: the limits were raised, or the points before it were dropped.
bool DriftModel::add_in_any_case(const OffsetPoint& point) {
  if (add_if_it_agrees(point)) return true;
  points_.push_back(point);
  if (points_.size() > most_points_) points_.pop_front();
  for (double factor = 2; factor <= kMostRaise; factor *= 2) {
    if (agrees_with({limits_.rate, limits_.rate_change_per_s * factor})) {
      limits_.rate_change_per_s *= factor * kRaiseMargin;
      return false;
    }
  }
  points_.erase(points_.begin(), points_.end() - 1);
  return false;
}

bool DriftModel::agrees_with(const DriftLimits& limits) const {
  View view(limits, points_.back().local_ns, points_.back().offset_ns);
  return std::all_of(points_.rbegin(), points_.rend(), [&](const OffsetPoint& point) { return view.add(point); });
}

double DriftModel::least_error_ns() const {
  const auto least = std::min_element(points_.begin(), points_.end(), [](const OffsetPoint& a, const OffsetPoint& b) {
    return a.error_ns < b.error_ns;
  });
  return static_cast<double>(least->error_ns);
}

OffsetPoint DriftModel::at(std::int64_t local_ns) const {
  TANDEM_ASSERT(!points_.empty());
  // The point nearest in time comes first: it matters most if rounding makes the last ones disagree.
  const auto later = std::lower_bound(points_.begin(), points_.end(), local_ns,
                                      [](const OffsetPoint& point, std::int64_t ns) { return point.local_ns < ns; });
  auto right = later, left = later;
  const std::int64_t base_ns = later == points_.end() ? points_.back().offset_ns : later->offset_ns;
  View view(limits_, local_ns, base_ns, least_error_ns());
  while (left != points_.begin() || right != points_.end()) {
    const bool take_left = right == points_.end() || (left != points_.begin() && local_ns - std::prev(left)->local_ns <
                                                                                     right->local_ns - local_ns);
    view.add(take_left ? *--left : *right++);
  }
  const Extent offsets = view.offsets();
  const double likely_ns = offsets.nearest(view.likeliest().offset);
  double error_ns = offsets.farthest_from(likely_ns);
  if (suspect_ && local_ns > points_.back().local_ns) {
    const double beyond_ns = limits_.rate * std::abs(static_cast<double>(local_ns - suspect_->local_ns));
    error_ns = std::max(error_ns, suspected_ns(*suspect_, base_ns, likely_ns) + beyond_ns);
  }
  return {local_ns, base_ns + std::llround(likely_ns), static_cast<std::int64_t>(std::ceil(error_ns + 0.5))};
}

GlobalClock DriftModel::line() const {
  TANDEM_ASSERT(!points_.empty());
  const std::int64_t origin_ns = last().local_ns, base_ns = points_.back().offset_ns;
  View view(limits_, origin_ns, base_ns, least_error_ns());
  for (auto point = points_.rbegin(); point != points_.rend(); ++point) view.add(*point);
  const Extent offsets = view.offsets(), rates = view.rates();
  const Corner likeliest = view.likeliest();
  const double likely_ns = offsets.nearest(likeliest.offset), likely_rate = rates.nearest(likeliest.rate);
  double error_ns = offsets.farthest_from(likely_ns), error_rate = rates.farthest_from(likely_rate);
  if (suspect_) {
    error_ns = std::max(error_ns, suspected_ns(*suspect_, base_ns, likely_ns));
    error_rate = std::max(error_rate, limits_.rate + std::abs(likely_rate));
  }
  const std::int64_t whole_ns = std::llround(likely_ns);
  return GlobalClock({.origin_ns = origin_ns,
                      .offset_ns = base_ns + whole_ns,
                      .rate = likely_rate,
                      .error_ns = error_ns + std::abs(likely_ns - static_cast<double>(whole_ns)),
                      .error_rate = error_rate,
                      .error_bend = limits_.rate_change_per_s * 1e-9});
}

GlobalTime DriftModel::to_global(std::int64_t local_ns) const {
  const OffsetPoint point = at(local_ns);
  return {local_ns + point.offset_ns, point.error_ns};
}

}  // namespace tandem::clock
