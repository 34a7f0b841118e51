// tandem/base/slab_heap.hpp: memory for many objects of one size, side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace tandem::base {

/// Memory for objects of one size, cut from slabs of 2 MiB. Objects made in one order are mostly used in that order or
/// its opposite (the requests of a burst, the data of a flow); side by side, each on as few cache lines as possible,
/// they can be prefetched, and few address translations cover them. A process that needs few touches few pages; from
/// its second slab on it asks for huge ones. A slab returns to the system with its last object, or stays for the next
/// ones.
///
/// Each operation takes constant time, except in the system. Not thread-safe. Objects that are still taken when the
/// heap ends keep their slabs.
class SlabHeap {
 public:
  static constexpr std::size_t kSlabBytes = std::size_t{2} << 20;

  enum class Emptied : bool { goes, stays };  ///< what happens to a slab whose last object was returned

  explicit constexpr SlabHeap(std::size_t object_bytes, Emptied emptied = Emptied::goes) noexcept
      : stride_(stride_for(object_bytes)), stays_(emptied == Emptied::stays) {}
  SlabHeap(const SlabHeap&) = delete;
  SlabHeap& operator=(const SlabHeap&) = delete;

  /// Memory for an object; null: the system has none.
  void* take() noexcept {
    if (with_room_ == nullptr && !add_slab()) return nullptr;
    Slab& slab = *with_room_;
    void* object = slab.free;
    if (object != nullptr) {
      slab.free = slab.free->next;
    } else {
      object = reinterpret_cast<std::byte*>(&slab) + slab.fresh_at;
      slab.fresh_at += stride_;
    }
    ++slab.taken;
    if (slab.full(stride_)) unlink(slab);
    return object;
  }

  /// Returns an object that `take` of this heap gave.
  void give_back(void* object) noexcept {
    Slab& slab = *reinterpret_cast<Slab*>(reinterpret_cast<std::uintptr_t>(object) & ~std::uintptr_t{kSlabBytes - 1});
    if (slab.full(stride_)) link(slab);
    slab.free = ::new (object) Free{slab.free};
    if (--slab.taken == 0 && !stays_) remove_slab(slab);
  }

  std::size_t slabs() const noexcept { return slabs_; }

 private:
  struct Free {
    Free* next;
  };
  /// Header at the beginning of each slab, which is aligned to its size.
  struct alignas(64) Slab {
    Slab* next = nullptr;  ///< among those with room
    Slab* previous = nullptr;
    Free* free = nullptr;                   ///< objects that came back
    std::uint32_t fresh_at = sizeof(Slab);  ///< from here on none was ever taken
    std::uint32_t taken = 0;

    bool full(std::uint32_t stride) const noexcept { return free == nullptr && fresh_at + stride > kSlabBytes; }
  };

  static constexpr std::uint32_t stride_for(std::size_t object_bytes) noexcept {
    const std::size_t alignment = object_bytes < 64 ? 16 : 64;
    return static_cast<std::uint32_t>((object_bytes + alignment - 1) / alignment * alignment);
  }

  void link(Slab& slab) noexcept;
  void unlink(Slab& slab) noexcept;
  bool add_slab() noexcept;
  void remove_slab(Slab& slab) noexcept;

  Slab* with_room_ = nullptr;
  std::size_t slabs_ = 0;
  const std::uint32_t stride_;
  const bool stays_;
};

}  // namespace tandem::base
