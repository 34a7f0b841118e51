// tandem/analysis/verdict/parallelism.hpp: how many tasks were submitted, ready and running, over time.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/analysis/history/history.hpp"
#include "tandem/analysis/tables/step_function.hpp"
#include "tandem/analysis/verdict/time_split.hpp"

namespace tandem::analysis {

/// Numbers of tasks of one rank or of all, within the makespan. Tasks that have run count; nodes that do not run, such
/// as sends and receives of the flow, do not. `StepFunction` gives mean and maximum of each over `makespan`; its bins
/// are for pictures.
struct Parallelism {
  std::uint32_t rank = no_number;  ///< no_number: all together
  Interval makespan;
  StepFunction submitted;     ///< tasks that are ready by `task.ready` and have not begun; 0 without that
  StepFunction ready;         ///< tasks ready but not begun, by `task.ready`; 0 without it
  StepFunction running;       ///< tasks whose kernel runs
  StepFunction idle_workers;  ///< workers for which `is_idle`
  std::int64_t idle_ns = 0;     ///< time in which some worker was idle
  std::int64_t starved_ns = 0;  ///< time in which some worker was idle and no task was ready
};

struct RunParallelism {
  Parallelism all;
  std::vector<Parallelism> ranks;  ///< by rank; those with tasks that have run, or with workers
};

/// Analyses parallelism. O(n) for n tasks and states, but for the search of reasons (`for_each_stretch`).
RunParallelism parallelism(const History& history, const TimeSplit& split);

}  // namespace tandem::analysis
