// tandem/runtime/exec/internal_tasks.hpp: the runtime's own tasks, which do nothing or combine partial results.
#pragma once

#include <memory>

#include "tandem/runtime/task/codelet_core.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// Functions of nodes without values and kernel: joins, events, accesses of the application.
inline constexpr TaskOps kNoValues{};

/// Functions of the task that adds the partial results of a group of `reduce` accesses to its access 0.
const TaskOps& combine_ops() noexcept;
/// Codelet of the combining task. Lives as long as the process.
CodeletCore& combine_codelet();

}  // namespace tandem::runtime
