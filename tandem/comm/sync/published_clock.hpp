// tandem/comm/sync/published_clock.hpp: the line to the reference's time, written by one thread at a time and read by
// all.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "tandem/base/parking.hpp"
#include "tandem/clock/global_clock.hpp"

namespace tandem::comm::internal::sync {

/// Protocol (a sequence lock, after Boehm, "Can seqlocks get along with programming language memory models?", 2012).
/// `sequence_` is odd while the words change. A reader takes the words between two reads of one even number; else it
/// tries again. A lock serialises writers. The words are atomics, so that a racing reader reads some value, and
/// discards it.
///
/// Orders. The writer's release fence after the odd number pairs with the reader's acquire fence before its second
/// read: a reader that has seen a new word sees the odd number, or a later one. The writer's release store of the even
/// number pairs with the reader's first, acquiring load: a reader that has seen that number sees all its words.
class PublishedClock {
 public:
  /// Called by one thread at a time.
  void set(const clock::GlobalClock& clock) noexcept {
    const auto words = std::bit_cast<std::array<std::uint64_t, kWords>>(clock);
    const std::uint64_t even = sequence_.load(std::memory_order_relaxed);
    sequence_.store(even + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_relaxed);
    sequence_.store(even + 2, std::memory_order_release);
  }

  /// Called by any thread; does not write to memory.
  clock::GlobalClock get() const noexcept {
    for (;;) {
      const std::uint64_t before = sequence_.load(std::memory_order_acquire);
      std::array<std::uint64_t, kWords> words;
      for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (before % 2 == 0 && sequence_.load(std::memory_order_relaxed) == before) {
        return std::bit_cast<clock::GlobalClock>(words);
      }
      base::pause_cpu();
    }
  }

 private:
  static constexpr std::size_t kWords = sizeof(clock::GlobalClock) / sizeof(std::uint64_t);
  static_assert(sizeof(clock::GlobalClock) % sizeof(std::uint64_t) == 0 &&
                std::is_trivially_copyable_v<clock::GlobalClock>);

  alignas(64) std::atomic<std::uint64_t> sequence_{0};
  std::array<std::atomic<std::uint64_t>, kWords> words_{};
};

}  // namespace tandem::comm::internal::sync
