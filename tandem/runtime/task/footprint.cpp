// tandem/runtime/task/footprint.cpp: a hash over shapes.
#include "tandem/runtime/task/footprint.hpp"

#include <cstddef>
#include <cstdint>

#include "tandem/base/splitmix64.hpp"
#include "tandem/runtime/data/handle.hpp"

namespace tandem::runtime {

model::Footprint footprint_of(const Task& task) noexcept {
  std::uint64_t hash = task.access_count, bytes = 0;
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    const Shape& shape = slot.handle()->shape;
    if (!slot.alias()) bytes += shape.bytes();
    for (const std::size_t number : {shape.rows, shape.cols, shape.element_bytes})
      hash = base::mix64(hash + base::kSplitMix64Step) ^ number;
  }
  return {base::mix64(hash), bytes};
}

std::size_t moved_bytes(const Task& task) noexcept {
  std::size_t bytes = 0;
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    if (slot.mode() == AccessMode::scratch) continue;
    const bool does_both = sees_value(slot.mode()) && makes_value(slot.mode());
    bytes += slot.handle()->shape.bytes() * (does_both ? 2 : 1);
  }
  return bytes;
}

}  // namespace tandem::runtime
