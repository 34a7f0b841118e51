// tandem/analysis/polling_neighbours.hpp: whether tasks take longer while other threads of their host poll.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/analysis/history.hpp"

namespace tandem::analysis {

/// Tasks that ran while other threads of the same host polled (idle workers, those that serve the network, progress threads), against tasks
/// of the same codelet on the same worker while none did. Polling takes cores, memory bandwidth and power from kernels.
struct PollingNeighbours {
  std::uint64_t tasks = 0;            ///< beside threads that polled, and compared
  double slowness = 1;                ///< the median of duration / median of the quiet tasks of the codelet on the worker
  std::int64_t excess_ns = 0;         ///< what these tasks took beyond those medians, all together
  SpillVector<std::uint32_t> slowed = {};  ///< rows of those that took longer; empty where the neighbours do no harm

  /// Neighbours that do harm throughout, not to a few tasks.
  bool do_harm() const noexcept { return tasks >= least_tasks && slowness >= least_slowness; }
  static constexpr std::uint64_t least_tasks = 16;
  static constexpr double least_slowness = 1.25;
};

/// A task is beside polling threads when they poll for half of its time or more, and quiet when they do for a tenth or less. Codelets with
/// less than 4 quiet tasks on a worker are not compared there, so nothing is found where some thread polls all the time.
/// O(n log n) for n tasks and states.
PollingNeighbours polling_neighbours(const History& history);

}  // namespace tandem::analysis
