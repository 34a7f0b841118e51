// tandem/runtime/wait/explain_stuck.hpp: explains why no task ends: which task waits for which, and what the last ones
// lack.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tandem/runtime/task/pool.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem::runtime {

/// Returns a text of several lines. `unfinished`: number of submitted tasks that have not ended; `running`: tasks whose
/// kernels run, with their workers; `why_memory`: that a task waits for memory and why, or nothing. By the submitting
/// thread, while no thread works on tasks.
std::string explain_stuck(TaskPool& pool, std::uint64_t unfinished, const std::vector<WorkerTeam::Running>& running,
                          const std::function<std::string(Task&)>& why_memory);

}  // namespace tandem::runtime
