// tandem/comm/engine/recycled.hpp: memory of short-lived objects, kept at hand for the next ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "tandem/base/sanitizers.hpp"
#include "tandem/base/slab_heap.hpp"
#include "tandem/base/spin_lock.hpp"

namespace tandem::comm::internal {

/// Base of a final class `T` whose objects come and go with each message. Freed ones wait in a magazine of the freeing
/// thread and are used again first, while their cache lines are warm. A thread has two magazines, of a batch each; full
/// ones go to a depot that all threads share (Bonwick and Adams, "Magazines and Vmem", 2001), so that a burst of
/// requests finds the memory of the last one, whichever thread freed it, until `trim` returns the depot's memory to the
/// heap (`base::SlabHeap`). Nothing is written into waiting objects, and the next ones are prefetched: a burst larger
/// than the caches would else wait for each of them.
///
/// Thread-safe. A thread's magazines are emptied when it ends; what it frees after that goes to the heap. Under
/// sanitizers nothing is kept, so that uses after the end are seen.
template <class T>
class Recycled {
 public:
  static void* operator new(std::size_t bytes) {
    if constexpr (kBatch == 0) return ::operator new(bytes);
    Shelf& shelf = shelf_;
    if (shelf.count == 0) [[unlikely]] return new_of_empty_shelf();
    --shelf.count;
    void* const* const rounds = shelf.rounds;
    const auto* const next = static_cast<const std::byte*>(rounds[std::ptrdiff_t{shelf.count} - kAhead]);
    for (std::size_t at = 0; at < sizeof(T); at += 64) __builtin_prefetch(next + at, 1);
    return rounds[shelf.count];
  }
  static void operator delete(void* memory) noexcept {
    if constexpr (kBatch == 0) return ::operator delete(memory);
    Shelf& shelf = shelf_;
    if (shelf.count == shelf.most) [[unlikely]] return delete_without_room(memory);
    shelf.rounds[shelf.count++] = memory;
  }

  /// Returns what is in no thread's magazines to the heap.
  static void trim() noexcept {
    Magazine* full = nullptr;
    Magazine* empty = nullptr;
    {
      const std::lock_guard guard(depot_.lock);
      full = std::exchange(depot_.full, nullptr);
      empty = std::exchange(depot_.empty, nullptr);
      depot_.bytes.store(0, std::memory_order_relaxed);
    }
    while (full != nullptr) discard(std::exchange(full, full->next), kBatch);
    while (empty != nullptr) discard(std::exchange(empty, empty->next), 0);
  }
  /// Bytes in the depot; outdated at once when others free.
  static std::size_t spare_bytes() noexcept { return depot_.bytes.load(std::memory_order_relaxed); }

 private:
  static constexpr unsigned kBatch = base::under_sanitizer ? 0 : 64;
  static constexpr int kAhead = 4;  ///< cache lines are prefetched this many objects before their use

  /// Objects that wait; the last one is used first.
  struct Magazine {
    Magazine() noexcept {
      for (void*& before : ahead) before = this;  // a prefetch of what is in the cache costs nothing
    }
    Magazine* next = nullptr;  ///< in the depot
    void* ahead[kAhead];       ///< before the first round
    void* rounds[kBatch > 0 ? kBatch : 1];
  };
  /// The magazines of a thread. It has no destructor, so that reaching it costs no check.
  struct Shelf {
    void** rounds = nullptr;  ///< in `loaded`
    unsigned count = 0;       ///< in `loaded`
    unsigned most = 0;        ///< a batch; 0 without `loaded`
    Magazine* loaded = nullptr;
    Magazine* other = nullptr;  ///< full, empty, or none
    bool other_full = false;
    bool watched = false;  ///< a destructor empties it at the thread's end
    bool ended = false;

    void load(Magazine* magazine, unsigned objects) noexcept {
      loaded = magazine;
      rounds = magazine->rounds;
      count = objects;
      most = kBatch;
    }
  };
  struct Depot {
    base::SpinLock lock;
    Magazine* full = nullptr;           ///< guarded by the lock
    Magazine* empty = nullptr;          ///< guarded by the lock
    std::atomic<std::size_t> bytes{0};  ///< changed under the lock, read without: a hint
    base::SlabHeap heap{sizeof(T)};     ///< guarded by the lock

    void add_bytes(std::ptrdiff_t objects) noexcept {
      bytes.store(bytes.load(std::memory_order_relaxed) + static_cast<std::size_t>(objects) * sizeof(T),
                  std::memory_order_relaxed);
    }
    static void push(Magazine*& list, Magazine* magazine) noexcept { magazine->next = std::exchange(list, magazine); }
    static Magazine* pop(Magazine*& list) noexcept {
      return list == nullptr ? nullptr : std::exchange(list, list->next);
    }
  };
  struct Emptier {
    ~Emptier() {
      Shelf& shelf = shelf_;
      if (shelf.loaded != nullptr) discard(shelf.loaded, shelf.count);
      if (shelf.other != nullptr) discard(shelf.other, shelf.other_full ? kBatch : 0);
      shelf = Shelf{};
      shelf.ended = true;
    }
  };

  /// Called when `loaded` is empty, or there is none: gets a full one, unless the thread may have none any more.
  [[gnu::noinline]] static void* new_of_empty_shelf() {
    if (!watch()) return one_of_heap();
    Shelf& shelf = shelf_;
    if (shelf.other_full) {
      Magazine* const empty = shelf.loaded;
      shelf.load(std::exchange(shelf.other, empty), kBatch);
      shelf.other_full = false;
      return operator new(sizeof(T));
    }
    {
      const std::lock_guard guard(depot_.lock);
      if (Magazine* const full = Depot::pop(depot_.full)) {
        depot_.add_bytes(-std::ptrdiff_t{kBatch});
        if (shelf.loaded != nullptr) Depot::push(depot_.empty, shelf.loaded);
        shelf.load(full, kBatch);
        return operator new(sizeof(T));
      }
    }
    if (shelf.loaded == nullptr) shelf.load(new Magazine, 0);
    fill(shelf);
    return operator new(sizeof(T));
  }

  static void* one_of_heap() {
    const std::lock_guard guard(depot_.lock);
    if (void* const memory = depot_.heap.take()) return memory;
    throw std::bad_alloc();
  }

  /// Fills a magazine from the heap, with at least one object, so that objects will be used in the order of their
  /// addresses.
  static void fill(Shelf& shelf) {
    const std::lock_guard guard(depot_.lock);
    unsigned taken = 0;
    while (taken < kBatch) {
      void* const memory = depot_.heap.take();
      if (memory == nullptr) break;
      shelf.rounds[kBatch - ++taken] = memory;
    }
    if (taken == 0) throw std::bad_alloc();
    if (taken < kBatch) std::memmove(shelf.rounds, shelf.rounds + (kBatch - taken), taken * sizeof(void*));
    shelf.count = taken;
  }

  /// Whether the thread has a shelf, which is emptied when the thread ends.
  static bool watch() noexcept {
    if (shelf_.ended) return false;
    if (!std::exchange(shelf_.watched, true)) {
      thread_local Emptier emptier;
      static_cast<void>(emptier);
    }
    return true;
  }

  /// Called when `loaded` is full, or there is none: gets an empty one, unless the thread may have none any more, or
  /// memory is short.
  [[gnu::noinline]] static void delete_without_room(void* memory) noexcept {
    if (!watch()) return give_back(memory);
    Shelf& shelf = shelf_;
    Magazine* const full = shelf.loaded;
    if (full != nullptr && shelf.other != nullptr && !shelf.other_full) {
      shelf.load(std::exchange(shelf.other, full), 0);
      shelf.other_full = true;
      return operator delete(memory);
    }
    Magazine* empty = nullptr;
    {
      const std::lock_guard guard(depot_.lock);
      if (shelf.other_full) {
        Depot::push(depot_.full, std::exchange(shelf.other, nullptr));
        depot_.add_bytes(kBatch);
        shelf.other_full = false;
      }
      empty = Depot::pop(depot_.empty);
    }
    if (empty == nullptr) empty = new (std::nothrow) Magazine;
    if (empty == nullptr) return give_back(memory);
    shelf.other = full;
    shelf.other_full = full != nullptr;
    shelf.load(empty, 0);
    operator delete(memory);
  }

  static void give_back(void* memory) noexcept {
    const std::lock_guard guard(depot_.lock);
    depot_.heap.give_back(memory);
  }
  /// Frees a magazine and its objects.
  static void discard(Magazine* magazine, unsigned objects) noexcept {
    {
      const std::lock_guard guard(depot_.lock);
      for (unsigned i = 0; i < objects; ++i) depot_.heap.give_back(magazine->rounds[i]);
    }
    delete magazine;
  }

  static inline thread_local constinit Shelf shelf_;
  static inline constinit Depot depot_;
};

}  // namespace tandem::comm::internal
