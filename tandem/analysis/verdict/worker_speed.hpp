// tandem/analysis/verdict/worker_speed.hpp: workers that take longer than others for their tasks.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/analysis/history/history.hpp"
#include "tandem/analysis/verdict/kernel_profile.hpp"

namespace tandem::analysis {

/// How fast a worker executes tasks, compared with the median of each codelet over all workers of its kind: a CPU core
/// is not slow because a GPU is faster.
struct WorkerSpeed {
  std::uint32_t rank = 0;
  std::uint16_t worker = 0;
  std::uint64_t tasks = 0;
  double slowness = 1;           ///< the median of duration / median of the codelet; 1: like the others
  std::int64_t excess_ns = 0;    ///< sum of its tasks' times beyond the medians; negative: less

  /// Whether the worker is slow generally, not just in a few tasks.
  bool is_slow() const noexcept { return tasks >= least_tasks && slowness >= least_slowness; }
  static constexpr std::uint64_t least_tasks = 8;
  static constexpr double least_slowness = 1.25;
};

/// The workers that have run tasks, by rank and worker. `kernels`: of this history. O(n) for n tasks.
std::vector<WorkerSpeed> worker_speeds(const History& history, const std::vector<KernelProfile>& kernels);

}  // namespace tandem::analysis
