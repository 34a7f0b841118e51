// benchmarks/common/trips.hpp: the times of single round trips, and what programs say of those by tasks and by messages
// alone.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/common/report.hpp"

namespace benchmarks {

/// Which rank the launcher makes of this process; 0 where it says nothing.
inline unsigned rank_by_launcher() {
  for (const char* name : {"TANDEM_JOB_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (const char* value = std::getenv(name); value != nullptr) return static_cast<unsigned>(std::atoi(value));
  return 0;
}

/// The value below which that part of the sorted samples lies. The list is not empty.
inline double percentile(std::vector<double> samples, double part) {
  const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(samples.size() - 1) + 0.5);
  std::nth_element(samples.begin(), samples.begin() + at, samples.end());
  return samples[static_cast<std::size_t>(at)];
}

/// Of a clock that all processes of a host read alike.
inline std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

/// The dates at which the ball passed one side. The first tenth of the trips does not count: the other side may still
/// be busy.
class Trips {
 public:
  explicit Trips(unsigned count) { dates_ns_.reserve(count + 1U); }

  void note() { dates_ns_.push_back(now_ns()); }
  /// Of each trip, in us. At least two dates were noted.
  std::vector<double> halves_us() const {
    std::vector<double> halves;
    for (std::size_t i = 1 + dates_ns_.size() / 10; i < dates_ns_.size(); ++i)
      halves.push_back(static_cast<double>(dates_ns_[i] - dates_ns_[i - 1]) / 2e3);
    return halves;
  }

 private:
  std::vector<std::int64_t> dates_ns_;
};

/// One sample of each of `comm_N`, `flow_N`, `added_N`, `comm_N_p99` and `flow_N_p99` per pair of trips.
class TripResults {
 public:
  explicit TripResults(std::size_t bytes) : bytes_(std::to_string(bytes)) {}

  void add(const Trips& comm, const Trips& flow) {
    const std::vector<double> plain = comm.halves_us(), tasks = flow.halves_us();
    comm_.push_back(median(plain));
    flow_.push_back(median(tasks));
    added_.push_back(flow_.back() - comm_.back());
    comm_p99_.push_back(percentile(plain, 0.99));
    flow_p99_.push_back(percentile(tasks, 0.99));
  }

  void print(const std::string& peer, const std::string& version, unsigned workers) const {
    Report report{peer, version, workers, {}};
    report.results = {{"comm_" + bytes_, "us", comm_},
                      {"flow_" + bytes_, "us", flow_},
                      {"added_" + bytes_, "us", added_},
                      {"comm_" + bytes_ + "_p99", "us", comm_p99_},
                      {"flow_" + bytes_ + "_p99", "us", flow_p99_}};
    report.print();
  }

 private:
  const std::string bytes_;
  std::vector<double> comm_, flow_, added_, comm_p99_, flow_p99_;
};

}  // namespace benchmarks
