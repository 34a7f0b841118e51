// benchmarks/overlap/harness.hpp: how much of a transfer is hidden behind computation on both sides.
//
// T is the time of the transfer alone. Both ranks then begin the transfer, compute for T on the core that they are
// bound to, and wait; together that takes O. The computation alone takes C, the same work with nothing under way.
// Hidden is (T + C - O) / min(T, C): all of it when O is the longer of the two, nothing when O is their sum. The slower
// rank counts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "benchmarks/common/options.hpp"
#include "benchmarks/common/two_ranks.hpp"

namespace benchmarks::overlap {

constexpr std::uint64_t data_tag = 1;

struct Plan {
  std::string transport;  ///< empty: the library chooses
  std::size_t bytes;
  unsigned repetitions;

  Plan(int argc, char** argv) : Plan(Options(argc, argv, {"transport", "bytes", "repetitions"})) {}

 private:
  explicit Plan(const Options& options)
      : transport(options.text("transport", "")),
        bytes(options.count("bytes", 16 << 20)),
        repetitions(options.count("repetitions", 3)) {}
};

/// Arithmetic that stays in registers, so that it disturbs nothing but the core. Returns something that depends on all
/// of it.
inline double compute(std::uint64_t steps) {
  double x = 0.5;
  for (std::uint64_t i = 0; i < steps; ++i) x = x * 0.999999 + 1e-9;
  return x;
}

/// Keeps the optimiser from dropping a computation.
inline void compute_for_real(std::uint64_t steps) {
  volatile double result = compute(steps);
  static_cast<void>(result);
}

/// Steps that take about that time on this core.
inline std::uint64_t steps_for(std::int64_t wanted_ns) {
  constexpr std::uint64_t probe = 10'000'000;
  compute_for_real(probe);
  const std::int64_t begin_ns = host_now_ns();
  compute_for_real(probe);
  return static_cast<std::uint64_t>(static_cast<double>(probe) * static_cast<double>(wanted_ns) /
                                    static_cast<double>(host_now_ns() - begin_ns));
}

/// One transfer from rank 0 to rank 1 with `steps` of computation between its beginning and the wait for it; perhaps
/// without the transfer. The time of the slower rank, on both.
template <class Rank>
std::int64_t round_ns(Rank& rank, std::vector<char>& data, bool transfer, std::uint64_t steps) {
  meet(rank);
  const std::int64_t start_ns = host_now_ns();
  if (transfer && rank.rank() == 0) rank.post_send(data_tag, data.data(), data.size());
  if (transfer && rank.rank() == 1) rank.post_receive(data_tag, data.data(), data.size());
  if (steps > 0) compute_for_real(steps);
  rank.wait_all();
  const std::int64_t took_ns = host_now_ns() - start_ns;
  return std::max(took_ns, swap_values(rank, took_ns));
}

template <class Rank>
void measure(Rank& rank, const Plan& plan) {
  std::vector<char> data(plan.bytes, 'd');
  round_ns(rank, data, true, 0);  // warms up
  Measurement hidden{"hidden", "percent", {}}, transfer{"transfer", "ms", {}}, computation{"computation", "ms", {}},
      together{"together", "ms", {}};
  for (unsigned i = 0; i < plan.repetitions; ++i) {
    const std::int64_t transfer_ns = round_ns(rank, data, true, 0);
    const std::uint64_t steps = steps_for(transfer_ns);
    const std::int64_t computation_ns = round_ns(rank, data, false, steps);
    const std::int64_t together_ns = round_ns(rank, data, true, steps);
    const auto saved = static_cast<double>(transfer_ns + computation_ns - together_ns);
    hidden.samples.push_back(100 *
                             std::clamp(saved / static_cast<double>(std::min(transfer_ns, computation_ns)), 0.0, 1.0));
    transfer.samples.push_back(static_cast<double>(transfer_ns) / 1e6);
    computation.samples.push_back(static_cast<double>(computation_ns) / 1e6);
    together.samples.push_back(static_cast<double>(together_ns) / 1e6);
  }
  if (rank.rank() != 0) return;
  print_detailed(Rank::name, rank.version(),
                 {{hidden,
                   {{"transfer_ms", median(transfer.samples)},
                    {"computation_ms", median(computation.samples)},
                    {"together_ms", median(together.samples)}}}});
}

}  // namespace benchmarks::overlap
