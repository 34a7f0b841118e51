// benchmarks/bcast/harness.hpp: what all broadcast programs measure, and how they say it.
//
// A broadcast is timed from the moment at which the root begins until the last recipient has all bytes. All ranks run
// on one machine and read one clock, so that times of different ranks may be subtracted. Between broadcasts the network
// rests, for rate limiters let a little pass early after a rest, and each round shall find them alike.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "benchmarks/common/report.hpp"

namespace benchmarks {

/// Nanoseconds that all processes of this machine count alike.
inline std::int64_t shared_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

/// The byte at a place of the message of a round: recipients verify that they got this round's.
inline unsigned char expected_byte(std::size_t place, std::uint32_t round) {
  return static_cast<unsigned char>(place * 131 + (place >> 9) + round * 29 + 7);
}
inline void fill(std::vector<unsigned char>& message, std::uint32_t round) {
  for (std::size_t i = 0; i < message.size(); ++i) message[i] = expected_byte(i, round);
}
inline bool holds(const std::vector<unsigned char>& message, std::uint32_t round) {
  for (std::size_t i = 0; i < message.size(); ++i)
    if (message[i] != expected_byte(i, round)) return false;
  return true;
}

/// One broadcast: for each rank but the root, in the order of ranks, nanoseconds after the start at which it had all
/// bytes, and at which it had forwarded them (equal where that cannot be seen).
struct BroadcastTimes {
  std::vector<std::int64_t> arrived_ns;
  std::vector<std::int64_t> released_ns;

  double last_ms() const {
    return static_cast<double>(*std::max_element(arrived_ns.begin(), arrived_ns.end())) / 1e6;
  }
  double mean_ms() const {
    return static_cast<double>(std::accumulate(arrived_ns.begin(), arrived_ns.end(), std::int64_t{0})) / 1e6 /
           static_cast<double>(arrived_ns.size());
  }
};

/// The broadcasts of one tree.
struct BroadcastResult {
  std::string name;
  std::vector<BroadcastTimes> rounds;
};

/// The median over the rounds, for each rank, in ms.
inline std::vector<double> medians_ms(const std::vector<BroadcastTimes>& rounds,
                                      std::vector<std::int64_t> BroadcastTimes::*times) {
  std::vector<double> result;
  for (std::size_t rank = 0; rank < (rounds.front().*times).size(); ++rank) {
    std::vector<double> samples;
    for (const BroadcastTimes& round : rounds) samples.push_back(static_cast<double>((round.*times)[rank]) / 1e6);
    result.push_back(median(samples));
  }
  return result;
}

/// Prints the JSON object that `tandem bench` reads, with the arrivals of each rank as "details".
inline void print_broadcasts(const std::string& peer, const std::string& version,
                             const std::vector<BroadcastResult>& results,
                             double (BroadcastTimes::*of_round)() const = &BroadcastTimes::last_ms) {
  const auto print_list = [](const char* name, const std::vector<double>& values) {
    std::printf("\"%s\": [", name);
    for (std::size_t i = 0; i < values.size(); ++i) std::printf("%s%.6g", i == 0 ? "" : ", ", values[i]);
    std::printf("]");
  };
  std::printf("{\"peer\": \"%s\", \"version\": \"%s\", \"results\": [", peer.c_str(), version.c_str());
  const char* separator = "";
  for (const BroadcastResult& result : results) {
    std::vector<double> samples;
    for (const BroadcastTimes& round : result.rounds) samples.push_back((round.*of_round)());
    const auto [least, most] = std::minmax_element(samples.begin(), samples.end());
    std::printf("%s{\"name\": \"%s\", \"unit\": \"ms\", \"median\": %.6g, \"min\": %.6g, \"max\": %.6g, \"n\": %zu, ",
                separator, result.name.c_str(), median(samples), *least, *most, samples.size());
    std::printf("\"details\": {");
    print_list("arrived_ms", medians_ms(result.rounds, &BroadcastTimes::arrived_ns));
    std::printf(", ");
    print_list("released_ms", medians_ms(result.rounds, &BroadcastTimes::released_ns));
    std::printf("}}");
    separator = ", ";
  }
  std::printf("]}\n");
  std::fflush(stdout);
}

}  // namespace benchmarks
