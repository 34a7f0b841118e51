// tandem/runtime/device/private_memory.hpp: memory of a kernel's own: scratch, and private copies in main memory.
#pragma once

#include <cstddef>
#include <vector>

#include "tandem/runtime/exec/kernel_call.hpp"
#include "tandem/runtime/memory/memory.hpp"

namespace tandem::runtime {

/// The private memory of one worker's kernels, or of those at one place of a device. Scratch memory lies where the
/// kernel works; it is kept from task to task and only grows, unless a budget counts it: then each task's end releases
/// it (`release_scratch`). Private copies belong to their data. Devices have copies that move
/// (`Memory::bind_private_copies`) instead. Used by one thread at a time.
class PrivateMemory {
 public:
  PrivateMemory() = default;
  ~PrivateMemory();
  PrivateMemory(PrivateMemory&&) noexcept = default;
  PrivateMemory& operator=(PrivateMemory&&) = delete;

  /// Calls the kernel of a task with `scratch` or `reduce` accesses. Throws what the kernel throws, and std::bad_alloc.
  void invoke(KernelCall& call, Memory& memory);
  /// Releases scratch memory after the kernel has ended; the next one gets other memory.
  void release_scratch() noexcept;

 private:
  /// Scratch memory of one access, on the node where the kernels work.
  struct Scratch {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };

  void* scratch(unsigned access, const Handle& data);
  void return_partials(Task& task, bool filled);

  std::vector<void*> pointers_;  ///< memory by access; null: the access uses a replica
  std::vector<Scratch> scratch_;
  MemoryNode* node_ = nullptr;  ///< node of the scratch memory
};

}  // namespace tandem::runtime
