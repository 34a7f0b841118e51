// tandem/runtime/exec/internal_tasks.hpp: what the runtime's own tasks do: nothing, or combine partial results.
#pragma once

#include <memory>

#include "tandem/runtime/task/codelet_core.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// Of nodes without values and kernel: joins, events, accesses of the application.
inline constexpr TaskOps kNoValues{};

/// Of the task that adds the partial results of a group of `reduce` accesses to the data; its access 0 is that data.
const TaskOps& combine_ops() noexcept;
/// Its codelet. Lives as long as the process.
CodeletCore& combine_codelet();

}  // namespace tandem::runtime
