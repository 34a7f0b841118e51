// tandem/runtime/task/footprint.hpp: the footprint of a task's data; tasks with the same one should take equally long.
#pragma once

#include <cstddef>
#include <span>

#include "tandem/model/tasks/footprint.hpp"
#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// A hash of the shapes and bytes of all data of a task. Costs a load per access.
model::Footprint footprint_of(const Task& task) noexcept;
/// As that of a task whose accesses have these shapes, and which names no data twice.
model::Footprint footprint_of(std::span<const Shape> shapes) noexcept;

/// Bytes that a kernel reads and writes if it uses all of its data once. Costs a load per access.
std::size_t moved_bytes(const Task& task) noexcept;

}  // namespace tandem::runtime
