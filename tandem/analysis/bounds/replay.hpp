// tandem/analysis/bounds/replay.hpp: when the tasks of a run would have ended with other times of its messages.
#pragma once

#include <cstdint>

#include "tandem/analysis/bounds/paths.hpp"
#include "tandem/analysis/bounds/task_graph.hpp"
#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// When the last task would have ended, in ns since the first event of the run, as Dimemas computes it for the POP
/// metrics: each worker runs its tasks in the measured order, with the measured durations. A task begins as long after
/// the last of its causes as measured. Its causes are the ends of its predecessors and of the worker's task before, the
/// arrivals of its messages, and its submission, which moves with the end of the task that the program had waited for.
/// With `Messages::free` a message arrives when it is posted.
///
/// With `Messages::measured` it is exactly the measured end; with `Messages::free` it is never later. Causes that seem
/// to be later than their effects (clocks err, or events were lost) are left out. 0 where no task has run. O(n log n).
std::int64_t replay_end_ns(const History& history, const TaskGraph& graph, Messages messages);

}  // namespace tandem::analysis
