// tandem/analysis/parallelism.hpp: how many tasks were submitted, ready and running, over time.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/analysis/history.hpp"
#include "tandem/analysis/step_function.hpp"
#include "tandem/analysis/time_split.hpp"

namespace tandem::analysis {

/// Of one rank or of all together, within the makespan. Tasks that have run count; nodes of the graph that do not run, such as sends and
/// receives of the flow, do not. Mean and maximum of each: `StepFunction`, over `makespan`; its bins are for pictures.
struct Parallelism {
  std::uint32_t rank = no_number;  ///< no_number: all together
  Interval makespan;
  StepFunction submitted;     ///< tasks that are submitted and have not ended
  StepFunction ready;         ///< tasks whose predecessors have ended, and that have not begun; of `task.ready`, and 0 without it
  StepFunction running;       ///< tasks whose kernel runs
  StepFunction idle_workers;  ///< as `is_idle` says
  std::int64_t idle_ns = 0;     ///< in which some worker was idle
  std::int64_t starved_ns = 0;  ///< in which some worker was idle and no task was ready
};

struct RunParallelism {
  Parallelism all;
  std::vector<Parallelism> ranks;  ///< by rank; those with tasks that have run, or with workers
};

/// O(n) for n tasks and states, but for the search of reasons (`for_each_stretch`).
RunParallelism parallelism(const History& history, const TimeSplit& split);

}  // namespace tandem::analysis
