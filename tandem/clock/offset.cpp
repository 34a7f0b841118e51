// tandem/clock/offset.cpp: the intersection of the intervals of the shortest round trips.
#include "tandem/clock/offset.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tandem::clock {
namespace {

struct Interval {
  std::int64_t low_ns, high_ns;
};

/// Equation (2).
Interval interval_at(std::int64_t local_ns, const PingPong& sample, const OffsetOptions& options) {
  const std::int64_t distance_ns =
      std::max(std::abs(sample.send_ns - local_ns), std::abs(sample.receive_ns - local_ns));
  const double drift_ns = options.rate_limit * static_cast<double>(distance_ns);
  const std::int64_t slack_ns = options.reading_ns + static_cast<std::int64_t>(std::ceil(drift_ns));
  return {sample.remote_ns - sample.receive_ns - slack_ns, sample.remote_ns - sample.send_ns + slack_ns};
}

/// The shortest round trips first; those that end before they began are no measurement.
std::vector<PingPong> shortest_first(std::span<const PingPong> samples) {
  std::vector<PingPong> sorted;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(sorted),
               [](const PingPong& sample) { return sample.round_trip_ns() >= 0; });
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const PingPong& a, const PingPong& b) { return a.round_trip_ns() < b.round_trip_ns(); });
  return sorted;
}

}  // namespace

std::optional<OffsetPoint> estimate_offset(std::span<const PingPong> samples, const OffsetOptions& options) {
  const std::vector<PingPong> sorted = shortest_first(samples);
  if (sorted.empty()) return std::nullopt;
  const auto wanted = static_cast<std::size_t>(std::ceil(options.keep * static_cast<double>(sorted.size())));
  const std::size_t kept = std::clamp<std::size_t>(wanted, 1, sorted.size());

  const std::int64_t local_ns = sorted.front().send_ns + sorted.front().round_trip_ns() / 2;
  const Interval shortest = interval_at(local_ns, sorted.front(), options);
  Interval common = shortest;
  for (std::size_t i = 1; i < kept; ++i) {
    const Interval other = interval_at(local_ns, sorted[i], options);
    common = {std::max(common.low_ns, other.low_ns), std::min(common.high_ns, other.high_ns)};
  }
  if (common.low_ns > common.high_ns) common = shortest;
  const std::int64_t width_ns = common.high_ns - common.low_ns;
  return OffsetPoint{local_ns, common.low_ns + width_ns / 2, (width_ns + 1) / 2};
}

}  // namespace tandem::clock
