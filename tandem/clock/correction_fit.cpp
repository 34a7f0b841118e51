// tandem/clock/correction_fit.cpp: knots and points of each rank, and the messages that bound them.
#include "tandem/clock/correction_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "tandem/clock/correction_solver.hpp"

namespace tandem::clock::internal {
namespace {

constexpr std::size_t kMostKnots = 4096;
constexpr double kLeastWindowNs = 1e3;
/// Knots extend beyond the points, where there are messages, for the duration of the points, or for this many windows.
constexpr double kReachWindows = 16;
/// The share of (2): round trips as short as the shortest are asymmetric by little (drift_model.hpp).
constexpr double kLikelyShare = 0.125;
/// Factor on (3): most distance of a right fit from the one without messages.
constexpr double kOpenFactor = 3;
/// What inequalities demand beyond (1), so that none is violated once knots and stamps are whole nanoseconds; and their
/// tolerance.
constexpr double kMarginNs = 3, kToleranceNs = 0.5;
/// Stiffness of inequalities, relative to the weight of the best point.
constexpr double kStiffness = 100;

double elapsed(std::int64_t from_ns, std::int64_t to_ns) { return static_cast<double>(to_ns - from_ns); }

/// The unknown function of one rank: a line, and knots. Rank 0's is zero; that of a rank without points is unknown.
struct Curve {
  bool known = false;
  std::int64_t origin_ns = 0, offset_ns = 0;  ///< the line: offset + rate (t - origin)
  double rate = 0;
  std::int64_t first_ns = 0;  ///< of the knots
  double window_ns = 0;
  std::size_t column = Place::nowhere, knot_count = 0;
  double rms_ns = 0, open_rate = 0;  ///< of (3): residuals of the points, and what their slope leaves open

  bool fitted() const noexcept { return knot_count > 0; }
  /// The line without offset_ns.
  double tilt_ns(std::int64_t local_ns) const noexcept { return rate * elapsed(origin_ns, local_ns); }
  std::int64_t knot_ns(std::size_t knot) const noexcept {
    return first_ns + std::llround(static_cast<double>(knot) * window_ns);
  }
  Place place(std::int64_t local_ns) const noexcept {
    if (!fitted()) return {};
    const double knots = elapsed(first_ns, local_ns) / window_ns;
    const double knot = std::clamp(std::floor(knots), 0.0, static_cast<double>(knot_count - 2));
    return {column + static_cast<std::size_t>(knot), knots - knot};
  }
  /// Whether the place is between two knots.
  bool covers(const Place& place) const noexcept { return !fitted() || (place.share >= 0 && place.share <= 1); }
};

/// A point's s_i of (2).
double deviation_ns(const SyncPoint& point, double least_error_ns) {
  const double error_ns = std::max(0.0, static_cast<double>(point.error_ns));
  return std::max(1.0, kLikelyShare * least_error_ns + error_ns - least_error_ns);
}

double least_error_ns(const std::vector<SyncPoint>& points) {
  const auto least = std::min_element(points.begin(), points.end(),
                                      [](const SyncPoint& a, const SyncPoint& b) { return a.error_ns < b.error_ns; });
  return std::max(0.0, static_cast<double>(least->error_ns));
}

/// The weighted line through the points; level when all are at one time.
void lay_line(const std::vector<SyncPoint>& points, Curve& curve) {
  curve.known = true;
  curve.origin_ns = points.front().local_ns;
  curve.offset_ns = points.front().reference_ns - points.front().local_ns;
  const double least_ns = least_error_ns(points);
  double weights = 0, times = 0, offsets = 0, squares = 0, products = 0;
  const auto each = [&](auto&& add) {
    for (const SyncPoint& point : points) {
      const double deviation = deviation_ns(point, least_ns);
      add(1 / (deviation * deviation), elapsed(curve.origin_ns, point.local_ns),
          static_cast<double>(point.reference_ns - point.local_ns - curve.offset_ns));
    }
  };
  each([&](double weight, double time, double offset) {
    weights += weight, times += weight * time, offsets += weight * offset;
  });
  const double mean_time = times / weights, mean_offset = offsets / weights;
  each([&](double weight, double time, double offset) {
    squares += weight * (time - mean_time) * (time - mean_time);
    products += weight * (time - mean_time) * (offset - mean_offset);
  });
  if (squares > 0) curve.rate = std::clamp(products / squares, -0.5, 0.5);
}

/// The part of the lower convex hull of (time, gap) of each group of messages between the same knots, before a message
/// decides.
struct Candidate {
  Inequality inequality;
  double time() const noexcept { return inequality.from.exists() ? inequality.from.share : inequality.to.share; }
  auto group() const noexcept { return std::pair(inequality.from.column, inequality.to.column); }
};

std::vector<Inequality> lower_hulls(std::vector<Candidate>& candidates) {
  const auto in_order = [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.group(), a.time(), a.inequality.gap) < std::tuple(b.group(), b.time(), b.inequality.gap);
  };
  if (!std::is_sorted(candidates.begin(), candidates.end(), in_order))
    std::sort(candidates.begin(), candidates.end(), in_order);
  std::vector<Candidate> hull;
  std::size_t group_begin = 0;
  for (const Candidate& next : candidates) {
    if (!hull.empty() && hull.back().group() != next.group()) group_begin = hull.size();
    // The last one is removed while it is not below the line from the one before to the next (Andrew's monotone chain).
    while (hull.size() > group_begin) {
      const Candidate& last = hull.back();
      if (last.time() == next.time()) break;
      if (hull.size() - group_begin < 2) break;
      const Candidate& before = hull[hull.size() - 2];
      const double run = next.time() - before.time(), rise = next.inequality.gap - before.inequality.gap;
      const double share = (last.time() - before.time()) / run;
      if (last.inequality.gap < before.inequality.gap + share * rise) break;
      hull.pop_back();
    }
    if (hull.size() > group_begin && hull.back().time() == next.time()) continue;  // the lower one came first
    hull.push_back(next);
  }
  std::vector<Inequality> kept;
  kept.reserve(hull.size());
  for (const Candidate& candidate : hull) kept.push_back(candidate.inequality);
  return kept;
}

class Fit {
 public:
  Fit(const TracedClocks& trace, const CorrectionOptions& options, const FitWindows& windows)
      : trace_(trace), options_(options), windows_(windows), curves_(trace.rank_count()),
        bend_(std::max(options.limits.rate_change_per_s * 1e-9, 1e-24)) {
    lay_knots();
  }

  FittedClocks fit() {
    FittedClocks result;
    result.knots.resize(curves_.size());
    if (unknowns_ == 0) return result;
    LeastSquares squares(knot_times());
    for (std::size_t rank = 1; rank < curves_.size(); ++rank)
      if (curves_[rank].fitted()) add_rank(trace_.points[rank], curves_[rank], squares);
    const LeastSquares::Limits limits{kStiffness / (least_deviation_ns_ * least_deviation_ns_), kToleranceNs};
    const std::vector<double> free = squares.solve({}, limits);
    for (std::size_t rank = 1; rank < curves_.size(); ++rank)
      if (curves_[rank].fitted()) find_open(trace_.points[rank], free, curves_[rank]);
    const std::vector<Inequality> inequalities = choose_inequalities(free, result);
    const std::vector<double> x = inequalities.empty() ? free : squares.solve(inequalities, limits);
    for (std::size_t i = 0; i < unknowns_; ++i)
      result.largest_shift_ns = std::max(result.largest_shift_ns, std::abs(x[i] - free[i]));
    for (std::size_t rank = 1; rank < curves_.size(); ++rank) result.knots[rank] = knots_of(curves_[rank], x);
    return result;
  }

 private:
  struct Span {
    std::int64_t first_ns = std::numeric_limits<std::int64_t>::max(),
                 last_ns = std::numeric_limits<std::int64_t>::min();
    void take(std::int64_t ns) noexcept { first_ns = std::min(first_ns, ns), last_ns = std::max(last_ns, ns); }
  };

  void lay_knots() {
    std::vector<Span> spans(curves_.size());
    for (const TracedMessage& message : trace_.messages) {
      spans[message.sender.index()].take(message.send_local_ns);
      spans[message.receiver.index()].take(message.receive_local_ns);
    }
    if (!curves_.empty()) curves_.front().known = true;
    for (std::size_t rank = 1; rank < curves_.size(); ++rank) {
      const std::vector<SyncPoint>& points = trace_.points[rank];
      if (points.empty()) continue;
      Curve& curve = curves_[rank];
      lay_line(points, curve);
      const std::int64_t first_ns = points.front().local_ns, last_ns = points.back().local_ns;
      const double window_ns = std::max(windows_.window_ns, kLeastWindowNs);
      const std::int64_t reach_ns = std::llround(std::max(elapsed(first_ns, last_ns), kReachWindows * window_ns));
      curve.first_ns = std::min(first_ns, std::max(spans[rank].first_ns, first_ns - reach_ns));
      const std::int64_t end_ns = std::max(last_ns, std::min(spans[rank].last_ns, last_ns + reach_ns));
      const double length_ns = std::max(elapsed(curve.first_ns, end_ns), 1.0);
      curve.window_ns = std::max(window_ns, length_ns / static_cast<double>(kMostKnots - 1));
      curve.knot_count = 1 + static_cast<std::size_t>(std::max(1.0, std::ceil(length_ns / curve.window_ns)));
      curve.column = unknowns_;
      unknowns_ += curve.knot_count;
    }
  }

  /// Times of knots, approximately by the reference.
  std::vector<double> knot_times() const {
    std::vector<double> times;
    for (const Curve& curve : curves_)
      for (std::size_t knot = 0; knot < curve.knot_count; ++knot)
        times.push_back(static_cast<double>(curve.knot_ns(knot) + curve.offset_ns));
    return times;
  }

  /// Adds the sums of (2). A very soft pull to the line makes the system regular where a single point does not
  /// determine the slope.
  void add_rank(const std::vector<SyncPoint>& points, const Curve& curve, LeastSquares& squares) {
    const double least_ns = least_error_ns(points);
    for (const SyncPoint& point : points) {
      const double deviation = deviation_ns(point, least_ns);
      least_deviation_ns_ = std::min(least_deviation_ns_, deviation);
      const auto offset_ns = static_cast<double>(point.reference_ns - point.local_ns - curve.offset_ns);
      squares.add_value(curve.place(point.local_ns), offset_ns - curve.tilt_ns(point.local_ns),
                        1 / (deviation * deviation));
    }
    const double bend_ns = bend_ * curve.window_ns * curve.window_ns;
    const double bend_weight = curve.window_ns / windows_.usual_ns / (bend_ns * bend_ns);
    const double slope_ns = options_.limits.rate * curve.window_ns;
    const double slope_weight = 1 / (slope_ns * slope_ns) / static_cast<double>(curve.knot_count);
    for (std::size_t knot = 0; knot + 1 < curve.knot_count; ++knot) {
      squares.add_zero(curve.column + knot, std::array{-1.0, 1.0}, slope_weight);
      if (knot + 2 < curve.knot_count) squares.add_zero(curve.column + knot, std::array{1.0, -2.0, 1.0}, bend_weight);
    }
  }

  /// Computes what (3) needs besides the two points.
  void find_open(const std::vector<SyncPoint>& points, const std::vector<double>& x, Curve& curve) const {
    double squares = 0, greatest_ns = 0;
    for (const SyncPoint& point : points) {
      const double fitted_ns = curve.tilt_ns(point.local_ns) + curve.place(point.local_ns).of(x);
      const double residual_ns = static_cast<double>(point.reference_ns - point.local_ns - curve.offset_ns) - fitted_ns;
      squares += residual_ns * residual_ns;
      greatest_ns = std::max(greatest_ns, static_cast<double>(point.error_ns));
    }
    curve.rms_ns = std::sqrt(squares / static_cast<double>(points.size()));
    const double length_ns = elapsed(points.front().local_ns, points.back().local_ns);
    curve.open_rate = options_.limits.rate;
    if (length_ns > 0) curve.open_rate = std::min(curve.open_rate, 2 * (greatest_ns + curve.rms_ns) / length_ns);
  }

  /// open_r of (3).
  double open_ns(base::Rank rank, std::int64_t local_ns) const {
    const Curve& curve = curves_[rank.index()];
    if (!curve.fitted()) return 0;
    const std::vector<SyncPoint>& points = trace_.points[rank.index()];
    const auto after = std::lower_bound(points.begin(), points.end(), local_ns,
                                        [](const SyncPoint& point, std::int64_t ns) { return point.local_ns < ns; });
    const SyncPoint& right = after == points.end() ? points.back() : *after;
    const SyncPoint& left = after == points.begin() ? points.front() : *std::prev(after);
    const double error_ns = curve.rms_ns + std::max(0.0, static_cast<double>(std::max(left.error_ns, right.error_ns)));
    if (after != points.begin() && after != points.end()) {
      const double gap_ns = elapsed(left.local_ns, right.local_ns);
      return error_ns + bend_ * gap_ns * gap_ns / 8;
    }
    const double beyond_ns = std::abs(elapsed(right.local_ns, local_ns));
    return error_ns + curve.open_rate * beyond_ns + bend_ * beyond_ns * beyond_ns / 2;
  }

  std::vector<Inequality> choose_inequalities(const std::vector<double>& free, FittedClocks& result) const {
    std::vector<Candidate> candidates;
    for (const TracedMessage& message : trace_.messages) {
      const Curve &from = curves_[message.sender.index()], &to = curves_[message.receiver.index()];
      if (message.sender == message.receiver || !from.known || !to.known) continue;
      const std::int64_t sent_ns = message.send_local_ns + from.offset_ns,
                         received_ns = message.receive_local_ns + to.offset_ns;
      const double latency_ns = static_cast<double>(least_latency_ns(options_, curves_.size(), message));
      const double gap_ns = elapsed(sent_ns, received_ns) + to.tilt_ns(message.receive_local_ns) -
                            from.tilt_ns(message.send_local_ns) - latency_ns - kMarginNs;
      const Inequality inequality{from.place(message.send_local_ns), to.place(message.receive_local_ns), gap_ns};
      if (!from.covers(inequality.from) || !to.covers(inequality.to)) continue;
      const double open = kMarginNs + kOpenFactor * (open_ns(message.sender, message.send_local_ns) +
                                                     open_ns(message.receiver, message.receive_local_ns));
      const double slack_ns = inequality.value(free);
      if (slack_ns > open) continue;
      if (slack_ns < -open) ++result.inconsistent_count;
      else candidates.push_back({inequality});
    }
    std::vector<Inequality> kept = lower_hulls(candidates);
    result.constraint_count = kept.size();
    return kept;
  }

  std::vector<Correction::Knot> knots_of(const Curve& curve, const std::vector<double>& x) const {
    std::vector<Correction::Knot> knots;
    for (std::size_t knot = 0; knot < curve.knot_count; ++knot) {
      const std::int64_t local_ns = curve.knot_ns(knot);
      const double offset_ns = curve.tilt_ns(local_ns) + x[curve.column + knot];
      knots.push_back({local_ns, local_ns + curve.offset_ns + std::llround(offset_ns)});
    }
    return knots;
  }

  const TracedClocks& trace_;
  const CorrectionOptions& options_;
  FitWindows windows_;
  std::vector<Curve> curves_;
  double bend_;  ///< alpha per ns
  std::size_t unknowns_ = 0;
  double least_deviation_ns_ = std::numeric_limits<double>::infinity();
};

}  // namespace

double usual_window_ns(const TracedClocks& trace) {
  std::vector<double> between_ns;
  for (std::size_t rank = 1; rank < trace.rank_count(); ++rank) {
    const std::vector<SyncPoint>& points = trace.points[rank];
    for (std::size_t i = 1; i < points.size(); ++i)
      if (points[i].local_ns > points[i - 1].local_ns)
        between_ns.push_back(elapsed(points[i - 1].local_ns, points[i].local_ns));
  }
  if (between_ns.empty()) return 1e9;
  const auto middle = between_ns.begin() + static_cast<std::ptrdiff_t>(between_ns.size() / 2);
  std::nth_element(between_ns.begin(), middle, between_ns.end());
  return std::max(*middle, kLeastWindowNs);
}

FittedClocks fit_clocks(const TracedClocks& trace, const CorrectionOptions& options, const FitWindows& windows) {
  return Fit(trace, options, windows).fit();
}

}  // namespace tandem::clock::internal
