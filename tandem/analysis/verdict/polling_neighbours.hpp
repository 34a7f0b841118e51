// tandem/analysis/verdict/polling_neighbours.hpp: whether tasks take longer while other threads of their host poll.
#pragma once

#include <cstdint>

#include "tandem/analysis/verdict/beside.hpp"

namespace tandem::analysis {

/// Tasks that ran while other threads of their host polled (idle workers, network threads, progress threads). Polling
/// takes cores, memory bandwidth and power from kernels. `slowed` is empty where the neighbours do no harm.
struct PollingNeighbours : BesideTasks {
  /// Whether they slow tasks generally, not just a few.
  bool do_harm() const noexcept { return tasks >= least_tasks && slowness >= least_slowness; }
  static constexpr std::uint64_t least_tasks = 16;
  static constexpr double least_slowness = 1.25;
};

/// Analyses polling; finds nothing where some thread polls all the time. O(n log n) for n tasks and states.
PollingNeighbours polling_neighbours(const History& history);

}  // namespace tandem::analysis
