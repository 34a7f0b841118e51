// tandem/runtime/task/footprint.hpp: the footprint of a task's data, by which tasks are compared that should take equally long.
#pragma once

#include <cstddef>

#include "tandem/model/tasks/footprint.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// A hash of the shapes of all data of a task, and their bytes. A load per access.
model::Footprint footprint_of(const Task& task) noexcept;

/// Bytes that a kernel reads and writes which uses all of its data once. A load per access.
std::size_t moved_bytes(const Task& task) noexcept;

}  // namespace tandem::runtime
