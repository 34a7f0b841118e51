// tandem/api/part_copies.hpp: tasks that copy a part of data to memory of its own, and back.
#pragma once

#include "tandem/api/parts.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::internal {

/// Functions of a task in main memory with two accesses. A split copies a piece of the first datum, the whole, to all
/// of the second one; a gather copies all of the first one to a piece of the second one, the whole. The value is a
/// `PlaceInWhole`.
const runtime::TaskOps& part_copy_ops(bool splits) noexcept;

}  // namespace tandem::internal
