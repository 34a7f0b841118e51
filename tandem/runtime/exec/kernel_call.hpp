// tandem/runtime/exec/kernel_call.hpp: what a kernel's invocation gets to see.
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
  /// Memory that stands in for the replica of access i: private copies in main memory, and scratch. Null for tasks that have neither.
  void* const* private_memory = nullptr;
  /// Where kernels of a device post their work; null on workers without one.
  void* queue = nullptr;

  /// Where access `i` finds its data, and the distance of its columns in elements.
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
