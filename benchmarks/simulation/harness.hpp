// benchmarks/simulation/harness.hpp: what the programs of `tandem bench simulation` share: the network that they
// simulate, the traffic on it, and how its cost is reported.
#pragma once

#include <array>
#include <cstdint>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/common/options.hpp"
#include "benchmarks/common/report.hpp"

namespace benchmarks::simulation {

/// Each host sends and receives at this rate. The latency is of a message between two of them.
constexpr double bytes_per_s = 10e9;
constexpr double latency_s = 2e-6;

/// Each rank sends one message after another, each to one of its partners, and the next one when the last one has
/// arrived.
struct Traffic {
  std::uint32_t ranks = 1000;
  std::uint32_t messages = 100;  ///< of each rank
  std::uint64_t bytes = 4096;

  std::uint64_t count() const { return std::uint64_t{ranks} * messages; }
};

inline std::vector<Traffic> all_traffic(const Options& options) {
  const std::uint32_t ranks = options.count("ranks", 1000), messages = options.count("messages", 100);
  return {{ranks, messages, 4096}, {ranks, messages, 65536}, {ranks, messages, 1 << 20}};
}

/// Receivers of one rank's messages, the same ones in each program: drawn among 16 partners, which are drawn as well.
class Receivers {
 public:
  Receivers(std::uint32_t self, std::uint32_t ranks) : state_(self * 2654435761U + 1) {
    for (std::uint32_t& partner : partners_) {
      partner = draw(ranks - 1);
      if (partner >= self) ++partner;
    }
  }
  std::uint32_t next() { return partners_[draw(partners)]; }

 private:
  static constexpr std::uint32_t partners = 16;
  std::uint32_t draw(std::uint32_t below) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>((state_ >> 33) % below);
  }

  std::uint64_t state_;
  std::array<std::uint32_t, partners> partners_;
};

/// Processor time of this process, in s.
inline double processor_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// What the programs measure: the cost of a simulation, or what it says.
inline bool is_about_times(const Options& options) { return options.has("times"); }

/// Processor time of each message, in us; or its virtual time for all of them, in us.
inline Measurement measurement(const Traffic& traffic, bool times, double took_s, double virtual_s) {
  const std::string name = "message_" + std::to_string(traffic.bytes);
  if (times) return {"all_" + name + "s", "us", {virtual_s * 1e6}};
  return {name, "us", {took_s * 1e6 / static_cast<double>(traffic.count())}};
}

}  // namespace benchmarks::simulation
