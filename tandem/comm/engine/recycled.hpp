// tandem/comm/engine/recycled.hpp: memory of short-lived objects, kept at hand for the next ones.
#pragma once

#include <cstddef>
#include <new>

namespace tandem::comm::internal {

/// Base of a final class `T` whose objects come and go with each message: freed ones wait on a shelf of the freeing thread, up to
/// `kKept`, and are the first to be used again, when their cache lines are still warm. What one thread allocates another may free.
/// A thread's shelf is emptied when it ends; what it frees after that goes to the heap.
template <class T>
class Recycled {
 public:
  static void* operator new(std::size_t bytes) {
    Spare* const spare = shelf_.first;
    if (spare == nullptr) [[unlikely]] return ::operator new(bytes);
    shelf_.first = spare->next;
    --shelf_.count;
    return spare;
  }
  static void operator delete(void* memory) noexcept {
    if (shelf_.count >= kKept || !shelf_.watched) [[unlikely]] {
      if (!watch()) return ::operator delete(memory);
    }
    shelf_.first = new (memory) Spare{shelf_.first};
    ++shelf_.count;
  }

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr unsigned kKept = 0;  // so that uses after the end are seen
#else
  static constexpr unsigned kKept = 128;
#endif

  struct Spare {
    Spare* next;
  };
  /// Without destructor, so that reaching it costs no check.
  struct Shelf {
    Spare* first = nullptr;
    unsigned count = 0;
    bool watched = false;  ///< something empties it at the thread's end
  };
  struct Emptier {
    ~Emptier() {
      while (Spare* const spare = shelf_.first) {
        shelf_.first = spare->next;
        ::operator delete(static_cast<void*>(spare));
      }
      shelf_.count = kKept;  // it is full from now on
    }
  };

  /// Whether there is room on the shelf; from now on it is emptied in the end.
  static bool watch() noexcept {
    if (shelf_.count >= kKept) return false;
    thread_local Emptier emptier;
    static_cast<void>(emptier);
    shelf_.watched = true;
    return true;
  }

  static inline thread_local constinit Shelf shelf_;
};

}  // namespace tandem::comm::internal
