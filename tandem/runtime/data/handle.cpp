// tandem/runtime/data/handle.cpp: where handles lie.
#include "tandem/runtime/data/handle.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "tandem/base/large_memory.hpp"

namespace tandem::runtime {
namespace {

/// The memory of the process's handles: slabs on huge pages, and a list of what was given back. Each submission looks at a line
/// of each datum, so data should lie beside each other, in the order of their registration, however fragmented the heap is.
/// Memory stays here until the process ends, since handles may outlive their runtime. Any thread, under a lock.
class HandleMemory {
 public:
  void* take() {
    const std::lock_guard guard(lock_);
    if (free_ == nullptr) grow();
    Free* const block = free_;
    free_ = block->next;
    return block;
  }

  void give_back(void* memory) noexcept {
    const std::lock_guard guard(lock_);
    free_ = new (memory) Free{free_};
  }

 private:
  struct Free {
    Free* next;
  };
  static constexpr std::size_t kFirstSlabBytes = 64 * 1024;
  static constexpr std::size_t kLargestSlabBytes = 2 * 1024 * 1024;

  void grow() {
    const std::size_t bytes = std::clamp(bytes_, kFirstSlabBytes, kLargestSlabBytes);
    auto slab = base::allocate_large(bytes);
    if (slab == nullptr) throw std::bad_alloc();
    slabs_.push_back(std::move(slab));
    bytes_ += bytes;
    std::byte* const memory = slabs_.back().get();
    for (std::size_t i = bytes / sizeof(Handle); i-- > 0;) free_ = new (memory + i * sizeof(Handle)) Free{free_};
  }

  base::SpinLock lock_;
  Free* free_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<std::unique_ptr<std::byte, base::FreeLarge>> slabs_;
};

/// Never destroyed: a handle that a static object holds may be given back later than that.
HandleMemory& handle_memory() {
  static HandleMemory* const memory = new HandleMemory;
  return *memory;
}

}  // namespace

// The address sanitizer shall see who uses a handle that is gone.
#if defined(__SANITIZE_ADDRESS__)
void* Handle::operator new(std::size_t bytes, std::align_val_t alignment) { return ::operator new(bytes, alignment); }
void Handle::operator delete(void* memory, std::align_val_t alignment) noexcept { ::operator delete(memory, alignment); }
#else
void* Handle::operator new(std::size_t, std::align_val_t) { return handle_memory().take(); }
void Handle::operator delete(void* memory, std::align_val_t) noexcept { handle_memory().give_back(memory); }
#endif

}  // namespace tandem::runtime
