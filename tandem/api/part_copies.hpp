// tandem/api/part_copies.hpp: tasks that copy a part of data to memory of its own, and back.
#pragma once

#include <cstddef>

#include "tandem/runtime/task/task.hpp"

namespace tandem::internal {

/// The value of such a task: where the part begins in the whole.
struct PlaceInWhole {
  std::size_t row = 0;
  std::size_t col = 0;
};

/// Of a task in main memory with two accesses. A split copies a piece of the first datum, the whole, to all of the second one; a gather
/// copies all of the first one to a piece of the second one, the whole.
const runtime::TaskOps& part_copy_ops(bool splits) noexcept;

}  // namespace tandem::internal
