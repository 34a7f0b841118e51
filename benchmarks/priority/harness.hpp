// benchmarks/priority/harness.hpp: how long an urgent message of 1 KiB takes that is posted behind 64 MiB of less
// urgent traffic.
//
// Results, in us from the posting of the urgent message to the end of its receive: `alone`, with nothing else under
// way; `behind`, posted right after the large message; `midway`, posted while the large one flows. Where the library
// says into how many segments it has cut the large message (`rank.segments()`), `segment` is the time that one took,
// and `behind` and `midway` report in "details" how many of them they took.
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
  unsigned repetitions;

  Plan(int argc, char** argv) : Plan(Options(argc, argv, {"transport", "bytes", "repetitions"})) {}

 private:
  explicit Plan(const Options& options)
      : transport(options.text("transport", "shm")),
        large_bytes(options.count("bytes", 64 << 20)),
        repetitions(options.count("repetitions", 5)) {}
};

enum class When { alone, behind, midway };

struct Times {
  std::int64_t urgent_ns, large_ns;
  std::int64_t segments;  ///< of the large message, on both sides together; 0: not known
};

template <class Rank>
std::int64_t segments_of(const Rank& rank) {
  if constexpr (requires { rank.segments(); }) return static_cast<std::int64_t>(rank.segments());
  else return 0;
}

/// One urgent message. Both ranks call this; rank 0 receives the times.
template <class Rank>
Times urgent_times(Rank& rank, When when, std::vector<char>& large, std::vector<char>& urgent) {
  const bool with_large = when != When::alone;
  const std::int64_t segments_before = segments_of(rank);
  if (rank.rank() == 1 && with_large) rank.post_receive(large_tag, large.data(), large.size());
  meet(rank);
  if (rank.rank() == 0) {
    const std::int64_t start_ns = host_now_ns();
    if (with_large) rank.post_send(large_tag, large.data(), large.size(), 0);
    // A fifth of the time that 64 MiB take at 10 GB/s: early enough to be in the middle, late enough for the stream to
    // flow.
    while (when == When::midway && host_now_ns() - start_ns < 1'500'000) rank.progress();
    const std::int64_t urgent_start_ns = host_now_ns();
    rank.post_send(urgent_tag, urgent.data(), urgent.size(), urgent_priority);
    rank.wait_all();
    const std::int64_t urgent_end_ns = swap_values(rank, 0);
    const std::int64_t large_end_ns = swap_values(rank, 0);
    const std::int64_t own_segments = segments_of(rank) - segments_before;
    return {urgent_end_ns - urgent_start_ns, large_end_ns - start_ns, own_segments + swap_values(rank, 0)};
  }
  rank.receive(urgent_tag, urgent.data(), urgent.size());
  const std::int64_t urgent_end_ns = host_now_ns();
  rank.wait_all();
  const std::int64_t large_end_ns = host_now_ns();
  swap_values(rank, urgent_end_ns);
  swap_values(rank, large_end_ns);
  swap_values(rank, segments_of(rank) - segments_before);
  return {};
}

template <class Rank>
void measure(Rank& rank, const Plan& plan) {
  std::vector<char> large(plan.large_bytes, 'l'), urgent(urgent_bytes, 'u');
  std::vector<Detailed> results{{{"alone", "us", {}}}, {{"behind", "us", {}}}, {{"midway", "us", {}}}};
  Measurement segment{"segment", "us", {}};
  std::vector<double> segment_bytes;
  constexpr When cases[] = {When::alone, When::behind, When::midway};
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    for (unsigned repetition = 0; repetition <= plan.repetitions; ++repetition) {
      const Times times = urgent_times(rank, cases[i], large, urgent);
      if (repetition == 0) continue;  // warms up
      results[i].measurement.samples.push_back(static_cast<double>(times.urgent_ns) / 1e3);
      if (cases[i] == When::alone || times.segments == 0) continue;
      segment.samples.push_back(static_cast<double>(times.large_ns) / 1e3 / static_cast<double>(times.segments));
      segment_bytes.push_back(static_cast<double>(plan.large_bytes) / static_cast<double>(times.segments));
    }
  }
  if (rank.rank() != 0) return;
  if (!segment.samples.empty()) {
    for (std::size_t i = 1; i < std::size(cases); ++i)
      results[i].details = {{"segments", median(results[i].measurement.samples) / median(segment.samples)},
                            {"segment_bytes", median(segment_bytes)}};
    results.push_back({std::move(segment)});
  }
  print_detailed(Rank::name, rank.version(), results);
}

}  // namespace benchmarks::priority
