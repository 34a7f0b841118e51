// tandem/runtime/memory/small_blocks.hpp: small pieces of memory, cut from large ones.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace tandem::runtime {

/// Cuts blocks below `kLarge` from chunks of `kChunk` bytes, and keeps released blocks by size. Chunks belong to the
/// caller, which frees them when no block is used any more. Used by one thread at a time.
class SmallBlocks {
 public:
  static constexpr std::size_t kLarge = std::size_t{256} << 10;
  static constexpr std::size_t kChunk = std::size_t{2} << 20;

  /// Bytes of a block for `bytes`: whole cache lines.
  static constexpr std::size_t rounded(std::size_t bytes) noexcept { return bytes == 0 ? 64 : (bytes + 63) / 64 * 64; }

  /// Allocates a block for `bytes`, aligned to a cache line. Calls `new_chunk` when no chunk has room; null if that
  /// returns null.
  template <class NewChunk>
  void* take(std::size_t bytes, const NewChunk& new_chunk) {
    const std::size_t size = rounded(bytes);
    if (std::vector<void*>& known = free_[size]; !known.empty()) {
      void* const memory = known.back();
      known.pop_back();
      return memory;
    }
    if (left_ < size) {
      void* const chunk = new_chunk();
      if (chunk == nullptr) return nullptr;
      next_ = static_cast<std::byte*>(chunk);
      left_ = kChunk;
    }
    left_ -= size;
    return std::exchange(next_, next_ + size);
  }

  /// Releases a block for `bytes`.
  void give_back(void* memory, std::size_t bytes) noexcept {
    try {
      free_[rounded(bytes)].push_back(memory);
    } catch (...) {  // no memory to remember the block: it is freed with its chunk
    }
  }

 private:
  std::map<std::size_t, std::vector<void*>> free_;  ///< free blocks by size
  std::byte* next_ = nullptr;                       ///< free bytes of the last chunk
  std::size_t left_ = 0;                            ///< number of bytes from `next_` on
};

}  // namespace tandem::runtime
