// tandem/comm/engine/recycled.hpp: memory of short-lived objects, kept at hand for the next ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

#include "tandem/base/spin_lock.hpp"
#include "tandem/comm/engine/slab_heap.hpp"

namespace tandem::comm::internal {

/// Base of a final class `T` whose objects come and go with each message. Freed ones wait on a shelf of the freeing thread and
/// are the first to be used again, when their cache lines are still warm. A shelf holds up to two batches; what is more goes, a
/// batch at a time, to a depot that all threads share and take from (Bonwick and Adams, "Magazines and Vmem", 2001), so that a
/// burst of requests finds the memory of the last one, whichever thread freed it, until `trim` gives what is in the depot back to
/// the heap (`SlabHeap`).
///
/// Thread-safe. A thread's shelf is emptied when it ends; what it frees after that goes to the heap. Under sanitizers nothing is
/// kept, so that uses after the end are seen.
template <class T>
class Recycled {
 public:
  static void* operator new(std::size_t bytes) {
    if constexpr (kBatch == 0) return ::operator new(bytes);
    Shelf& shelf = shelf_;
    Spare* const spare = shelf.first;
    if (spare == nullptr) [[unlikely]] return new_of_empty_shelf();
    shelf.first = spare->next;
    ++shelf.room;
    return spare;
  }
  static void operator delete(void* memory) noexcept {
    if constexpr (kBatch == 0) return ::operator delete(memory);
    Shelf& shelf = shelf_;
    if (shelf.room == 0) [[unlikely]] return delete_without_room(memory);
    auto* const spare = new (memory) Spare;  // a batch's first learns later what `next_batch` is
    spare->next = shelf.first;
    shelf.first = spare;
    --shelf.room;
  }

  /// Gives what no thread has at hand back to the heap.
  static void trim() noexcept {
    Spare* batch = nullptr;
    {
      const std::lock_guard guard(depot_.lock);
      batch = std::exchange(depot_.first, nullptr);
      depot_.bytes.store(0, std::memory_order_relaxed);
    }
    while (batch != nullptr) give_back(std::exchange(batch, batch->next_batch));
  }
  /// In the depot; at once outdated when others free.
  static std::size_t spare_bytes() noexcept { return depot_.bytes.load(std::memory_order_relaxed); }

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr unsigned kBatch = 0;
#else
  static constexpr unsigned kBatch = 64;
#endif

  struct Spare {
    Spare* next;
    Spare* next_batch;  ///< of a batch's first, in the depot
  };
  /// Without destructor, so that reaching it costs no check.
  struct Shelf {
    Spare* first = nullptr;  ///< up to a batch
    Spare* batch = nullptr;  ///< a whole one, or none
    unsigned room = 0;       ///< at `first`, for so many more; 0 unless `watched`
    bool watched = false;    ///< something empties it at the thread's end
    bool ended = false;
  };
  struct Depot {
    base::SpinLock lock;
    Spare* first = nullptr;             ///< guarded by the lock
    std::atomic<std::size_t> bytes{0};  ///< changed under the lock, read without: a hint
    SlabHeap heap{sizeof(T)};           ///< guarded by the lock
  };
  struct Emptier {
    ~Emptier() {
      give_back(std::exchange(shelf_.first, nullptr));
      give_back(std::exchange(shelf_.batch, nullptr));
      shelf_.room = 0;
      shelf_.ended = true;
    }
  };

  /// The shelf's `first` is empty: fills it, unless the thread has no shelf any more.
  [[gnu::noinline]] static void* new_of_empty_shelf() {
    static_assert(sizeof(T) >= sizeof(Spare));
    if (!watch()) return one_of_heap();
    if (shelf_.batch != nullptr) {
      shelf_.first = std::exchange(shelf_.batch, nullptr);
    } else {
      const std::lock_guard guard(depot_.lock);
      if (depot_.first != nullptr) {
        shelf_.first = std::exchange(depot_.first, depot_.first->next_batch);
        depot_.bytes.store(spare_bytes() - kBatch * sizeof(T), std::memory_order_relaxed);
      } else {
        shelf_.first = new_batch();
      }
    }
    shelf_.room = 0;
    return operator new(sizeof(T));
  }

  static void* one_of_heap() {
    const std::lock_guard guard(depot_.lock);
    if (void* const memory = depot_.heap.take()) return memory;
    throw std::bad_alloc();
  }

  /// From the heap; the depot's lock is held. Its objects lie in the order in which they will be used.
  static Spare* new_batch() {
    Spare* first = nullptr;
    Spare** end = &first;
    for (unsigned i = 0; i < kBatch; ++i) {
      void* const memory = depot_.heap.take();
      if (memory == nullptr) {
        while (first != nullptr) depot_.heap.give_back(std::exchange(first, first->next));
        throw std::bad_alloc();
      }
      *end = new (memory) Spare{nullptr, nullptr};
      end = &(*end)->next;
    }
    return first;
  }

  /// Whether the thread has a shelf; from now on it is emptied in the end.
  static bool watch() noexcept {
    if (shelf_.ended) return false;
    if (!std::exchange(shelf_.watched, true)) {
      thread_local Emptier emptier;
      static_cast<void>(emptier);
    }
    return true;
  }

  /// The shelf has no room: makes some, unless the thread has no shelf any more.
  [[gnu::noinline]] static void delete_without_room(void* memory) noexcept {
    if (!watch()) return give_back(new (memory) Spare{nullptr, nullptr});
    Spare* const batch = std::exchange(shelf_.batch, std::exchange(shelf_.first, nullptr));
    shelf_.room = kBatch;
    if (batch != nullptr) {
      const std::lock_guard guard(depot_.lock);
      batch->next_batch = std::exchange(depot_.first, batch);
      depot_.bytes.store(spare_bytes() + kBatch * sizeof(T), std::memory_order_relaxed);
    }
    operator delete(memory);
  }

  /// A batch or less goes back to the heap.
  static void give_back(Spare* spare) noexcept {
    const std::lock_guard guard(depot_.lock);
    while (spare != nullptr) depot_.heap.give_back(std::exchange(spare, spare->next));
  }

  static inline thread_local constinit Shelf shelf_;
  static inline constinit Depot depot_;
};

}  // namespace tandem::comm::internal
