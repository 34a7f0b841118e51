// tandem/runtime/worker/private_memory.cpp: prepares private memory, and returns partial results.
#include "tandem/runtime/worker/private_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>

#include "tandem/runtime/memory/out_of_memory.hpp"

namespace tandem::runtime {

void PrivateMemory::invoke(KernelCall& call, Memory& memory) {
  Task& task = call.task;
  pointers_.assign(task.access_count, nullptr);
  scratch_.resize(std::max<std::size_t>(scratch_.size(), task.access_count));
  for (unsigned i = 0; i < task.access_count; ++i)
    if (task.accesses()[i].mode() == AccessMode::scratch) pointers_[i] = scratch(i, *task.accesses()[i].handle());
  call.private_memory = pointers_.data();
  try {
    for (unsigned i = 0; i < task.access_count; ++i)
      if (task.accesses()[i].mode() == AccessMode::reduce) pointers_[i] = memory.take_partial(*task.accesses()[i].handle());
    task.ops->invoke(call);
  } catch (...) {
    return_partials(task, false);
    throw;
  }
  return_partials(task, true);
}

void* PrivateMemory::scratch(unsigned access, const Handle& data) {
  const std::size_t bytes = data.shape.bytes();
  constexpr std::size_t line_bytes = 64;
  std::vector<std::byte>& memory = scratch_[access];
  try {
    memory.resize(std::max(bytes + line_bytes, memory.size()));
  } catch (const std::exception&) {
    throw OutOfMemory(fmt::format("no scratch memory for {}: it takes {} bytes on each worker that runs such a task", data.described(),
                                  bytes));
  }
  void* start = memory.data();
  std::size_t room = memory.size();
  return std::align(line_bytes, bytes, start, room);
}

void PrivateMemory::return_partials(Task& task, bool filled) {
  for (unsigned i = 0; i < task.access_count; ++i)
    if (task.accesses()[i].mode() == AccessMode::reduce && pointers_[i] != nullptr)
      Memory::return_partial(*task.accesses()[i].handle(), pointers_[i], filled);
}

}  // namespace tandem::runtime
