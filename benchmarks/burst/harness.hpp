// benchmarks/burst/harness.hpp: many requests at once, as in the matching benchmark of NewMadeleine (Denis,
// "Scalability of the NewMadeleine communication library for large numbers of MPI point-to-point requests", CCGrid
// 2019).
//
// Rank 0 sends n messages of one byte with tags n-1 down to 0, rank 1 receives tags 0 up to n-1: the order in which a
// list of requests is searched from the wrong end. Expected: all receives are posted before the first send, and the
// time is that of posting them and that from the first send to the end of the last receive. Unexpected: all messages
// are there before the first receive is posted, and the time is that from the first send to the end of the last
// receive. Results: us per message.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/common/cores.hpp"
#include "benchmarks/common/options.hpp"
#include "benchmarks/common/two_ranks.hpp"

namespace benchmarks::burst {

constexpr std::uint32_t counts[] = {1, 10, 100, 1000, 10'000, 50'000, 200'000};

struct Plan {
  std::string transport;
  std::uint32_t most;    ///< messages at once
  unsigned repetitions;  ///< of the largest burst; smaller ones are repeated more often
  double patience_s;     ///< a series stops growing once one burst took longer

  Plan(int argc, char** argv) : Plan(Options(argc, argv, {"transport", "most", "repetitions", "patience"})) {}

 private:
  explicit Plan(const Options& options)
      : transport(options.text("transport", "shm")),
        most(options.count("most", 200'000)),
        repetitions(options.count("repetitions", 5)),
        patience_s(options.count("patience", 2)) {}
};

struct Kind {
  const char* name;
  bool expected, any_source;
};
constexpr Kind kinds[] = {{"expected_exact", true, false},
                          {"expected_wildcard", true, true},
                          {"unexpected_exact", false, false},
                          {"unexpected_wildcard", false, true}};

constexpr std::uint64_t all_sent_tag = 1'000'000'002, go_tag = 1'000'000'003;

template <class Rank>
void post_receives(Rank& rank, std::uint32_t count, std::vector<char>& bytes, bool any_source) {
  for (std::uint32_t tag = 0; tag < count; ++tag) rank.post_receive(tag, &bytes[tag], 1, any_source);
}

template <class Rank>
void post_sends(Rank& rank, std::uint32_t count, std::vector<char>& bytes) {
  for (std::uint32_t tag = count; tag-- > 0;) rank.post_send(tag, &bytes[tag], 1);
}

/// One burst; both ranks return the time of it.
template <class Rank>
std::int64_t burst_ns(Rank& rank, const Kind& kind, std::uint32_t count, std::vector<char>& bytes) {
  meet(rank);
  char token = 0;
  if (rank.rank() == 0) {
    if (kind.expected) rank.receive(go_tag, &token, 1);
    const std::int64_t start_ns = host_now_ns();
    post_sends(rank, count, bytes);
    if (!kind.expected) rank.post_send(all_sent_tag, &token, 1);
    rank.wait_all();
    return swap_values(rank, start_ns);
  }
  std::int64_t posting_ns = 0;
  if (kind.expected) {
    const std::int64_t begin_ns = host_now_ns();
    post_receives(rank, count, bytes, kind.any_source);
    posting_ns = host_now_ns() - begin_ns;
    // Not `send`: its wait is for this message alone, and so would be its progress.
    rank.post_send(go_tag, &token, 1);
  } else {
    rank.receive(all_sent_tag, &token, 1);
    post_receives(rank, count, bytes, kind.any_source);
  }
  rank.wait_all();
  const std::int64_t end_ns = host_now_ns();
  // Rank 0 sends its start time, and receives how long the whole burst took.
  std::int64_t start_ns = 0, took_ns = 0;
  rank.post_receive(value_tag, &start_ns, sizeof start_ns);
  rank.wait_all();
  took_ns = posting_ns + end_ns - start_ns;
  rank.post_send(value_tag, &took_ns, sizeof took_ns);
  rank.wait_all();
  return took_ns;
}

/// Small bursts are repeated until their time can be measured.
inline unsigned repetitions_of(std::uint32_t count, unsigned least) {
  return count <= 100 ? 40 * least : count <= 1000 ? 10 * least : count <= 10'000 ? 2 * least : least;
}

template <class Rank>
void measure(Rank& rank, const Plan& plan) {
  bind_to_core(rank.rank());  // mpirun binds its two by itself
  std::vector<Detailed> results;
  std::vector<char> bytes(plan.most, 'b');
  for (const Kind& kind : kinds) {
    for (const std::uint32_t count : counts) {
      if (count > plan.most) break;
      Measurement measurement{std::string(kind.name).append("_").append(std::to_string(count)), "us", {}};
      std::int64_t longest_ns = burst_ns(rank, kind, count, bytes);  // warms up
      const bool patient = static_cast<double>(longest_ns) < plan.patience_s * 1e9;
      for (unsigned i = 0; i < (patient ? repetitions_of(count, plan.repetitions) : 1); ++i)
        measurement.samples.push_back(static_cast<double>(burst_ns(rank, kind, count, bytes)) / 1e3 / count);
      const auto& samples = measurement.samples;
      std::vector<std::pair<std::string, double>> details{{"requests", count},
                                                          {"first_decile_us", quantile(samples, 0.1)},
                                                          {"ninth_decile_us", quantile(samples, 0.9)}};
      results.push_back({std::move(measurement), std::move(details)});
      if (!patient) break;
    }
  }
  if (rank.rank() == 0) print_detailed(Rank::name, rank.version(), results);
}

}  // namespace benchmarks::burst
