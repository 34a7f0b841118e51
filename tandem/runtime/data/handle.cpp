// tandem/runtime/data/handle.cpp: the memory of handles.
#include "tandem/runtime/data/handle.hpp"

#include <mutex>
#include <new>

#include "tandem/base/exceptions.hpp"
#include "tandem/base/sanitizers.hpp"
#include "tandem/base/slab_heap.hpp"
#include "tandem/base/spin_lock.hpp"

namespace tandem::runtime {
namespace {

/// The memory of the process's handles. Each submission reads a line of each datum, so data should be adjacent, in the
/// order of registration, however fragmented the heap is. The memory is kept until the process ends, so that a program
/// that drops and registers data again and again does not wait for the system. Any thread.
class HandleMemory {
 public:
  void* take() {
    const std::lock_guard guard(lock_);
    if (void* const memory = heap_.take()) return memory;
    throw std::bad_alloc();
  }
  void give_back(void* memory) noexcept {
    const std::lock_guard guard(lock_);
    heap_.give_back(memory);
  }

 private:
  base::SpinLock lock_;
  base::SlabHeap heap_{sizeof(Handle), base::SlabHeap::Emptied::stays};
};

/// Never destroyed: a static object may release its handle later than static destructors run.
HandleMemory& handle_memory() {
  static HandleMemory* const memory = new HandleMemory;
  return *memory;
}

}  // namespace

// Lets the address sanitizer report a use of a freed handle.
void* Handle::operator new(std::size_t bytes, std::align_val_t alignment) {
  if constexpr (base::under_address_sanitizer) return ::operator new(bytes, alignment);
  return handle_memory().take();
}
void Handle::operator delete(void* memory, std::align_val_t alignment) noexcept {
  if constexpr (base::under_address_sanitizer) return ::operator delete(memory, alignment);
  handle_memory().give_back(memory);
}

Handle& named(Handle* handle, const char* action) {
  if (handle == nullptr)
    throw UsageError(std::string("cannot ") + action + " an empty Data object; register data first");
  return *handle;
}

}  // namespace tandem::runtime
