// tandem/base/large_memory.cpp: aligned blocks, and advice to the system.
#include "tandem/base/large_memory.hpp"

#include <sys/mman.h>

#include <cstdlib>

namespace tandem::base {

void FreeLarge::operator()(void* memory) const noexcept { std::free(memory); }

std::unique_ptr<std::byte, FreeLarge> allocate_large(std::size_t bytes) noexcept {
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  const bool large = bytes >= huge_page;
  const std::size_t alignment = large ? huge_page : 64;
  const std::size_t size = (bytes + alignment - 1) / alignment * alignment;
  if (size < bytes) return nullptr;
  void* const memory = std::aligned_alloc(alignment, size);
  // This is advice only: small pages are as correct.
  if (memory != nullptr && large) (void)madvise(memory, size, MADV_HUGEPAGE);
  return std::unique_ptr<std::byte, FreeLarge>(static_cast<std::byte*>(memory));
}

}  // namespace tandem::base
