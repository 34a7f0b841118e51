// tandem/runtime/task/footprint.cpp: a hash over shapes.
#include "tandem/runtime/task/footprint.hpp"

#include <cstddef>
#include <cstdint>

#include "tandem/base/splitmix64.hpp"
#include "tandem/runtime/data/handle.hpp"

namespace tandem::runtime {

namespace {

/// The shapes of a task's data, one after the other.
class ShapeHash {
 public:
  explicit ShapeHash(std::size_t count) noexcept : hash_(count) {}
  void add(const Shape& shape, bool counts) noexcept {
    if (counts) bytes_ += shape.bytes();
    for (const std::size_t number : {shape.rows, shape.cols, shape.element_bytes})
      hash_ = base::mix64(hash_ + base::kSplitMix64Step) ^ number;
  }
  model::Footprint footprint() const noexcept { return {base::mix64(hash_), bytes_}; }

 private:
  std::uint64_t hash_, bytes_ = 0;
};

}  // namespace

model::Footprint footprint_of(const Task& task) noexcept {
  ShapeHash hash(task.access_count);
  for (unsigned i = 0; i < task.access_count; ++i)
    hash.add(task.accesses()[i].handle()->shape, !task.accesses()[i].alias());
  return hash.footprint();
}

model::Footprint footprint_of(std::span<const Shape> shapes) noexcept {
  ShapeHash hash(shapes.size());
  for (const Shape& shape : shapes) hash.add(shape, true);
  return hash.footprint();
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
