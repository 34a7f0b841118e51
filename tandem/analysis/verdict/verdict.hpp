// tandem/analysis/verdict/verdict.hpp: what limits a run, in the order of what it cost, and what to try.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/analysis/bounds/area_bound.hpp"
#include "tandem/analysis/bounds/paths.hpp"
#include "tandem/analysis/verdict/contention.hpp"
#include "tandem/analysis/verdict/kernel_profile.hpp"
#include "tandem/analysis/verdict/time_split.hpp"
#include "tandem/analysis/verdict/worker_kinds.hpp"

namespace tandem::analysis {

/// The analyses of a run that a verdict needs. Immutable.
struct Summary {
  explicit Summary(const History& history) : Summary(history, TaskGraph(history)) {}
  Summary(const History& history, const TaskGraph& graph);

  WorkerKinds kinds;  ///< to whose numbers the analyses of kernels refer
  TimeSplit split;
  AreaBound area;
  CriticalPath path, path_with_messages;
  RealisedPath realised;
  std::vector<KernelProfile> kernels;
  Contention contention;
};

/// Something that cost time. `lost_ns`: by how much the makespan would be shorter, if all workers had executed tasks
/// instead.
struct Finding {
  std::string_view key;   ///< "slow_submission": for programs
  std::int64_t lost_ns = 0;
  std::string what;       ///< a sentence
  std::string remedy;     ///< what to try
};

/// The findings, greatest loss first. Losses below 2 % of the makespan are left out; an empty list: nothing to gain
/// here.
std::vector<Finding> verdict(const History& history, const Summary& summary);

}  // namespace tandem::analysis
