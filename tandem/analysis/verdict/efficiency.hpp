// tandem/analysis/verdict/efficiency.hpp: which share of the workers' time was useful, as a product of factors.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/analysis/verdict/time_split.hpp"

namespace tandem::analysis {

/// The efficiencies of the POP centre of excellence (pop-coe.eu, "POP standard metrics for parallel performance
/// analysis"), with workers where POP has processes. Useful time u is the time in which a worker executes kernels. T is
/// the makespan, T_ideal the makespan with a network without latency and with unlimited bandwidth.
///
///     parallel efficiency = mean(u) / T = load balance * serialisation * transfer
///     load balance        = mean(u) / max(u)       1: all workers have executed kernels for the same time
///     serialisation       = max(u) / T_ideal       below 1: the busiest worker waited for other tasks, for the runtime or for the program
///     transfer            = T_ideal / T            below 1: messages were on their way while workers needed them
///
/// POP's communication efficiency is serialisation * transfer. All lie between 0 and 1, and the product is exact but
/// for rounding. Deviations from POP: Dimemas simulates T_ideal for POP; here it is a replay of the measured tasks in
/// which messages arrive when they are posted (`replay.hpp`), at least max(u) and at most T. Time in the runtime and in
/// the program counts as not useful, and so as serialisation.
struct Efficiency {
  double parallel = 0;
  double load_balance = 0, serialisation = 0, transfer = 0;
};

/// The efficiencies of one rank's workers. T and T_ideal are the run's, hence transfer as well.
struct RankEfficiency : Efficiency {
  std::uint32_t rank = 0;
  std::uint32_t workers = 0;
  std::int64_t useful_ns = 0;  ///< of all of them
};

struct RunEfficiency : Efficiency {
  std::int64_t ideal_makespan_ns = 0;  ///< T_ideal
  /// Load balance is `across_ranks` (mean / max over ranks of the mean useful time of a rank's workers) times
  /// `within_ranks`.
  double across_ranks = 0, within_ranks = 0;
  std::vector<RankEfficiency> ranks;  ///< by rank; those with a worker
};

/// Computes the efficiencies; `replayed_end_ns` is `replay_end_ns` with `Messages::free`. Empty where no worker has
/// executed anything. O(n) for n workers.
std::optional<RunEfficiency> efficiency(const TimeSplit& split, std::int64_t replayed_end_ns);

}  // namespace tandem::analysis
