// benchmarks/priority/harness.hpp: how long an urgent message of 1 KiB takes that is posted behind 64 MiB of less urgent traffic.
//
// Results, in us from the posting of the urgent message to the end of its receive: `alone`, with nothing else under way;
// `behind`, posted right after the large message; `midway`, posted while the large one flows. `segment` is the time of one
// segment of the large message: its size over the measured bandwidth. `behind` and `midway` tell in "details" how many segments
// that is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/common/options.hpp"
#include "benchmarks/common/two_ranks.hpp"

namespace benchmarks::priority {

constexpr std::size_t urgent_bytes = 1024;
constexpr int urgent_priority = 10;
constexpr std::uint64_t large_tag = 1, urgent_tag = 2;

struct Plan {
  std::string transport;
  std::size_t large_bytes;
  std::size_t segment_bytes;  ///< that the transport cuts large messages into; 0: it has none
  unsigned repetitions;

  Plan(int argc, char** argv) : Plan(Options(argc, argv, {"transport", "bytes", "segment", "repetitions"})) {}

 private:
  explicit Plan(const Options& options)
      : transport(options.text("transport", "shm")),
        large_bytes(options.count("bytes", 64 << 20)),
        segment_bytes(options.has("segment") ? options.count("segment", 1) : 0),
        repetitions(options.count("repetitions", 5)) {}
};

enum class When { alone, behind, midway };

struct Times {
  std::int64_t urgent_ns, large_ns;
};

/// One urgent message. Both ranks call this; rank 0 is told the times.
template <class Rank>
Times urgent_times(Rank& rank, When when, std::vector<char>& large, std::vector<char>& urgent) {
  const bool with_large = when != When::alone;
  if (rank.rank() == 1 && with_large) rank.post_receive(large_tag, large.data(), large.size());
  meet(rank);
  if (rank.rank() == 0) {
    const std::int64_t start_ns = host_now_ns();
    if (with_large) rank.post_send(large_tag, large.data(), large.size(), 0);
    // A fifth of the time that 64 MiB take at 10 GB/s: early enough to be in the middle, late enough for the stream to flow.
    while (when == When::midway && host_now_ns() - start_ns < 1'500'000) rank.progress();
    const std::int64_t urgent_start_ns = host_now_ns();
    rank.post_send(urgent_tag, urgent.data(), urgent.size(), urgent_priority);
    rank.wait_all();
    const std::int64_t urgent_end_ns = swap_values(rank, 0);
    const std::int64_t large_end_ns = swap_values(rank, 0);
    return {urgent_end_ns - urgent_start_ns, large_end_ns - start_ns};
  }
  rank.receive(urgent_tag, urgent.data(), urgent.size());
  const std::int64_t urgent_end_ns = host_now_ns();
  rank.wait_all();
  const std::int64_t large_end_ns = host_now_ns();
  swap_values(rank, urgent_end_ns);
  swap_values(rank, large_end_ns);
  return {};
}

template <class Rank>
void measure(Rank& rank, const Plan& plan) {
  std::vector<char> large(plan.large_bytes, 'l'), urgent(urgent_bytes, 'u');
  std::vector<Detailed> results{{{"alone", "us", {}}}, {{"behind", "us", {}}}, {{"midway", "us", {}}}};
  Measurement segment{"segment", "us", {}};
  constexpr When cases[] = {When::alone, When::behind, When::midway};
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    for (unsigned repetition = 0; repetition <= plan.repetitions; ++repetition) {
      const Times times = urgent_times(rank, cases[i], large, urgent);
      if (repetition == 0) continue;  // warms up
      results[i].measurement.samples.push_back(static_cast<double>(times.urgent_ns) / 1e3);
      if (cases[i] == When::behind && plan.segment_bytes > 0)
        segment.samples.push_back(static_cast<double>(times.large_ns) / 1e3 * static_cast<double>(plan.segment_bytes) /
                                  static_cast<double>(plan.large_bytes));
    }
  }
  if (rank.rank() != 0) return;
  if (plan.segment_bytes > 0) {
    for (std::size_t i = 1; i < std::size(cases); ++i)
      results[i].details = {{"segments", median(results[i].measurement.samples) / median(segment.samples)},
                            {"segment_bytes", static_cast<double>(plan.segment_bytes)}};
    results.push_back({std::move(segment)});
  }
  print_detailed(Rank::name, rank.version(), results);
}

}  // namespace benchmarks::priority
