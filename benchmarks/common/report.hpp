// benchmarks/common/report.hpp: samples, their median and spread, and the JSON object that each benchmark program
// prints.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace benchmarks {

/// One measured quantity. `samples` is not empty; `tasks` is how many tasks one sample ran, and 0 where that means
/// nothing.
struct Measurement {
  std::string name;
  std::string unit;
  std::vector<double> samples;
  std::size_t tasks = 0;
};

/// The middle of the sorted samples, or the mean of the two in the middle. The list is not empty.
inline double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

/// What one program measured.
struct Report {
  std::string peer;
  std::string version;
  unsigned workers = 0;
  std::vector<Measurement> results;

  /// Writes the JSON object, and nothing else, to standard output. Names hold no characters that JSON would escape.
  void print() const {
    std::printf("{\"peer\": \"%s\", \"version\": \"%s\", \"workers\": %u, \"results\": [", peer.c_str(),
                version.c_str(), workers);
    const char* separator = "";
    for (const Measurement& result : results) {
      const auto [low, high] = std::minmax_element(result.samples.begin(), result.samples.end());
      std::printf("%s{\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.6g, \"min\": %.6g, \"max\": %.6g, \"n\": %zu",
                  separator, result.name.c_str(), result.unit.c_str(), median(result.samples), *low, *high,
                  result.samples.size());
      if (result.tasks > 0) {
        std::printf(", \"tasks\": %zu", result.tasks);
      }
      std::printf("}");
      separator = ", ";
    }
    std::printf("]}\n");
    std::fflush(stdout);
  }
};

}  // namespace benchmarks
