// benchmarks/common/two_ranks.hpp: what benchmarks of two ranks on one host share: one clock, values that they
// exchange, and results with details.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/common/report.hpp"

namespace benchmarks {

/// One clock for all processes of a host.
inline std::int64_t host_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Tags that no measured message has.
constexpr std::uint64_t meeting_tag = 1'000'000'000, value_tag = 1'000'000'001;

/// Until both ranks are here.
template <class Rank>
void meet(Rank& rank) {
  char mine = 0, other = 0;
  if (rank.rank() == 0) rank.send(meeting_tag, &mine, 1);
  rank.receive(meeting_tag, &other, 1);
  if (rank.rank() == 1) rank.send(meeting_tag, &mine, 1);
}

/// What the other rank says, in exchange for ours.
template <class Rank>
std::int64_t swap_values(Rank& rank, std::int64_t value) {
  std::int64_t other = 0;
  rank.post_receive(value_tag, &other, sizeof other);
  rank.post_send(value_tag, &value, sizeof value);
  rank.wait_all();
  return other;
}

/// The value below which that share of the samples lies (nearest rank). Not empty.
inline double quantile(std::vector<double> samples, double share) {
  std::sort(samples.begin(), samples.end());
  return samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1) + 0.5)];
}

/// A measurement with numbers beside it.
struct Detailed {
  Measurement measurement;
  std::vector<std::pair<std::string, double>> details = {};
};

/// As Report::print, with an object "details" in each result.
inline void print_detailed(const std::string& peer, const std::string& version, const std::vector<Detailed>& results) {
  std::printf("{\"peer\": \"%s\", \"version\": \"%s\", \"workers\": 2, \"results\": [", peer.c_str(), version.c_str());
  const char* separator = "";
  for (const auto& [measurement, details] : results) {
    const auto [low, high] = std::minmax_element(measurement.samples.begin(), measurement.samples.end());
    std::printf("%s{\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.6g, \"min\": %.6g, \"max\": %.6g, \"n\": %zu",
                separator, measurement.name.c_str(), measurement.unit.c_str(), median(measurement.samples), *low, *high,
                measurement.samples.size());
    std::printf(", \"details\": {");
    const char* comma = "";
    for (const auto& [key, value] : details) {
      std::printf("%s\"%s\": %.6g", comma, key.c_str(), value);
      comma = ", ";
    }
    std::printf("}}");
    separator = ", ";
  }
  std::printf("]}\n");
  std::fflush(stdout);
}

}  // namespace benchmarks
