// tandem/base/index_stack.hpp: a lock-free stack of indices, which manages the free ones of a fixed set of objects.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

namespace tandem::base {

/// Indices below a capacity, each inside at most once. Any thread puts and takes; neither ever waits.
///
/// Protocol. `head_` holds the top index plus 1 (0: empty) in its low half, and a count of changes in its high half. A
/// thread that takes reads the top, then the index below it, and exchanges the head: if others have taken the top and
/// put it back meanwhile, the count differs, so that a wrong `next_` is never used (the ABA problem). A put releases
/// what its thread did with the object; the take that returns it acquires that. The count has 32 bits: a thread would
/// have to sleep between two instructions for 2^32 changes.
template <template <class> class Atomic = std::atomic>
class IndexStack {
 public:
  explicit IndexStack(std::uint32_t capacity) : next_(std::make_unique<Atomic<std::uint32_t>[]>(capacity)) {}

  void put(std::uint32_t index) noexcept {
    std::uint64_t head = head_.load(std::memory_order_relaxed);
    std::uint64_t changed;
    do {
      next_[index].store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
      changed = count_after(head) | (std::uint64_t{index} + 1);
    } while (!head_.compare_exchange_weak(head, changed, std::memory_order_release, std::memory_order_relaxed));
  }

  /// Takes the index that was put last; empty: there is none.
  std::optional<std::uint32_t> take() noexcept {
    std::uint64_t head = head_.load(std::memory_order_acquire);
    for (;;) {
      const auto top = static_cast<std::uint32_t>(head);
      if (top == 0) return {};
      // This may be of another time: then the exchange fails.
      const std::uint64_t changed = count_after(head) | next_[top - 1].load(std::memory_order_relaxed);
      if (head_.compare_exchange_weak(head, changed, std::memory_order_acquire, std::memory_order_acquire))
        return top - 1;
    }
  }

  bool looks_empty() const noexcept { return static_cast<std::uint32_t>(head_.load(std::memory_order_relaxed)) == 0; }

 private:
  static constexpr std::uint64_t count_after(std::uint64_t head) noexcept { return ((head >> 32) + 1) << 32; }

  Atomic<std::uint64_t> head_{0};
  std::unique_ptr<Atomic<std::uint32_t>[]> next_;
};

}  // namespace tandem::base
