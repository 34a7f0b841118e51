// tandem/runtime/worker/private_memory.hpp: memory that a kernel gets for itself: scratch, and partial results of reductions.
#pragma once

#include <cstddef>
#include <vector>

#include "tandem/runtime/exec/kernel_call.hpp"
#include "tandem/runtime/memory/memory.hpp"

namespace tandem::runtime {

/// The private memory of one worker's kernels. Scratch memory is kept from task to task and only grows; partial results belong to
/// their data. Used by the worker's thread.
class PrivateMemory {
 public:
  /// Calls the kernel of a task with `scratch` or `reduce` accesses. Throws what it throws, and std::bad_alloc.
  void invoke(KernelCall& call, Memory& memory);

 private:
  void* scratch(unsigned access, const Handle& data);
  void return_partials(Task& task, bool filled);

  std::vector<void*> pointers_;  ///< by access; null: the access uses a replica
  std::vector<std::vector<std::byte>> scratch_;
};

}  // namespace tandem::runtime
