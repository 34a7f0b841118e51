// tandem/runtime/device/private_memory.cpp: prepares private memory, and returns partial results.
#include "tandem/runtime/device/private_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tandem/runtime/memory/out_of_memory.hpp"

namespace tandem::runtime {

PrivateMemory::~PrivateMemory() { release_scratch(); }

void PrivateMemory::release_scratch() noexcept {
  for (Scratch& scratch : scratch_)
    if (scratch.memory != nullptr) node_->release(std::exchange(scratch.memory, nullptr), scratch.bytes);
}

void PrivateMemory::invoke(KernelCall& call, Memory& memory) {
  Task& task = call.task;
  node_ = &memory.node(call.node);
  pointers_.assign(task.access_count, nullptr);
  scratch_.resize(std::max<std::size_t>(scratch_.size(), task.access_count));
  for (unsigned i = 0; i < task.access_count; ++i)
    if (task.accesses()[i].mode() == AccessMode::scratch) pointers_[i] = scratch(i, *task.accesses()[i].handle());
  call.private_memory = pointers_.data();
  try {
    for (unsigned i = 0; i < task.access_count; ++i)
      if (task.accesses()[i].mode() == AccessMode::reduce)
        pointers_[i] = memory.take_partial(*task.accesses()[i].handle());
    task.ops->invoke(call);
  } catch (...) {
    return_partials(task, false);
    throw;
  }
  return_partials(task, true);
}

void* PrivateMemory::scratch(unsigned access, const Handle& data) {
  const std::size_t bytes = data.shape.bytes();
  Scratch& scratch = scratch_[access];
  if (scratch.memory != nullptr && scratch.bytes >= bytes) return scratch.memory;
  if (scratch.memory != nullptr) node_->release(std::exchange(scratch.memory, nullptr), scratch.bytes);
  scratch.memory = node_->allocate(bytes);
  scratch.bytes = bytes;
  if (scratch.memory == nullptr)
    throw OutOfMemory(
        fmt::format("no scratch memory for {}: it takes {} bytes in {} for each task that runs there at a time",
                    data.described(), bytes, node_->name()));
  return scratch.memory;
}

void PrivateMemory::return_partials(Task& task, bool filled) {
  for (unsigned i = 0; i < task.access_count; ++i)
    if (task.accesses()[i].mode() == AccessMode::reduce && pointers_[i] != nullptr)
      Memory::return_partial(*task.accesses()[i].handle(), pointers_[i], filled);
}

}  // namespace tandem::runtime
