// tandem/base/slab_heap.cpp: slabs from the system, and the list of those with room.
#include "tandem/base/slab_heap.hpp"

#include <sys/mman.h>

namespace tandem::base {
namespace {

/// Memory of a slab's size, aligned to it; null: none. Not by `allocate_large`, whose blocks have huge pages from the
/// first one on, which is much for a process with few objects, and may stay with the heap when they are freed.
void* map_slab() noexcept {
  constexpr std::size_t bytes = SlabHeap::kSlabBytes;
  void* const mapped =
      mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before = (bytes - reinterpret_cast<std::uintptr_t>(begin) % bytes) % bytes;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, bytes - before);
  return begin + before;
}

}  // namespace

void SlabHeap::link(Slab& slab) noexcept {
  slab.next = with_room_;
  if (with_room_ != nullptr) with_room_->previous = &slab;
  with_room_ = &slab;
}

void SlabHeap::unlink(Slab& slab) noexcept {
  (slab.previous != nullptr ? slab.previous->next : with_room_) = slab.next;
  if (slab.next != nullptr) slab.next->previous = slab.previous;
  slab.next = slab.previous = nullptr;
}

bool SlabHeap::add_slab() noexcept {
  void* const memory = map_slab();
  if (memory == nullptr) return false;
  if (slabs_++ > 0) (void)madvise(memory, kSlabBytes, MADV_HUGEPAGE);  // advice only: small pages are as correct
  link(*::new (memory) Slab);
  return true;
}

void SlabHeap::remove_slab(Slab& slab) noexcept {
  unlink(slab);
  --slabs_;
  munmap(&slab, kSlabBytes);
}

}  // namespace tandem::base
