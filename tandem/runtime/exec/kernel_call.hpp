// tandem/runtime/exec/kernel_call.hpp: one run of a task's kernel, with the memory that it sees.
#pragma once

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// One run of a task on a worker.
struct KernelCall {
  Task& task;
  unsigned worker = 0;
  NodeIndex node = 0;
  unsigned implementation = 0;
  /// By access, memory that replaces the replica: private copies in main memory, and scratch. Null for tasks that have
  /// neither.
  void* const* private_memory = nullptr;
  /// The queue to which a device's kernels post their work; null on workers without a device.
  void* queue = nullptr;

  /// Memory of access `i`, with the distance of its columns in elements.
  Replica memory(unsigned i) const noexcept {
    Handle& handle = *task.accesses()[i].handle();
    if (private_memory != nullptr && private_memory[i] != nullptr) {
      Replica replica;
      replica.pointer = private_memory[i];
      replica.ld = handle.shape.rows;
      return replica;
    }
    return handle.replica(node);
  }
  const Shape& shape(unsigned i) const noexcept { return task.accesses()[i].handle()->shape; }
};

}  // namespace tandem::runtime
