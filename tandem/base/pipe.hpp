// tandem/base/pipe.hpp: a lock-free queue of pointers from one thread to others that take in turn.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "tandem/base/inbox.hpp"

namespace tandem::base {

/// One producer; consumers one at a time (under a lock of theirs). Unbounded. Unlike an `Inbox` it is read without
/// following links through the entries, so that the consumer fetches many entries' lines at a time, which are in the
/// producer's cache.
///
/// Protocol. Entries stand in chunks. `put` stores the entry, and then the count of entries written (sequentially
/// consistent, so that a consumer that announces that it will sleep and then finds `empty()`, and a producer that puts
/// and then looks for sleepers, cannot miss each other). `take_all` reads the count (acquire), visits what it has not
/// yet visited, and then stores how many it has read: a thread that finds the two counts equal, and waits until the
/// consumers' lock is free, sees what they did with the entries. The link to a next chunk is written before the count
/// that includes its first entry. Chunks that were read return to the producer.
///
/// Cost: `put` is one exchange, `take_all` two loads when there is nothing.
template <class T, template <class> class Atomic = std::atomic, unsigned kRoom = 62>
class Pipe {
 public:
  Pipe() : last_(new Chunk), first_(last_) {}
  ~Pipe() {
    for (Chunk* chunks : {first_, spare_, returned_.take_all()})
      while (chunks != nullptr) delete std::exchange(chunks, static_cast<Chunk*>(chunks->next));
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  /// Called by the producer.
  void put(T* entry) {
    if (room_used_ == kRoom) begin_chunk();
    last_->entries[room_used_++].store(entry, std::memory_order_relaxed);
    written_.store(++put_, std::memory_order_seq_cst);
  }

  /// Calls `visit(T*)` for each entry, in order. Called by consumers in turn.
  template <class Visit>
  void take_all(Visit visit) {
    const std::uint64_t written = written_.load(std::memory_order_acquire);
    std::uint64_t read = read_.load(std::memory_order_relaxed);
    if (read == written) return;
    while (read != written) {
      if (room_read_ == kRoom) end_chunk();
      const auto count = static_cast<unsigned>(std::min<std::uint64_t>(kRoom - room_read_, written - read));
      const Atomic<T*>* const entries = &first_->entries[room_read_];
      for (unsigned i = 0; i < std::min(count, kAhead); ++i) fetch(entries[i]);
      for (unsigned i = 0; i < count; ++i) {
        if (i + kAhead < count) fetch(entries[i + kAhead]);
        visit(entries[i].load(std::memory_order_relaxed));
      }
      room_read_ += count;
      read += count;
    }
    read_.store(read, std::memory_order_release);
  }

  /// Any thread.
  bool empty() const noexcept {
    return written_.load(std::memory_order_seq_cst) == read_.load(std::memory_order_acquire);
  }
  bool looks_empty() const noexcept {
    return written_.load(std::memory_order_relaxed) == read_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned kAhead = 8;
  struct alignas(64) Chunk {
    Chunk* next = nullptr;
    std::array<Atomic<T*>, kRoom> entries{};
  };

  static void fetch(const Atomic<T*>& entry) noexcept { __builtin_prefetch(entry.load(std::memory_order_relaxed), 1); }
  void begin_chunk() {
    if (spare_ == nullptr) spare_ = returned_.take_all();
    Chunk* const chunk = spare_ != nullptr ? std::exchange(spare_, static_cast<Chunk*>(spare_->next)) : new Chunk;
    chunk->next = nullptr;
    last_->next = chunk;
    last_ = chunk;
    room_used_ = 0;
  }
  void end_chunk() {
    Chunk* const done = std::exchange(first_, static_cast<Chunk*>(first_->next));
    room_read_ = 0;
    returned_.put(done);
  }

  // Fields of the producer.
  Chunk* last_;
  Chunk* spare_ = nullptr;
  std::uint64_t put_ = 0;
  unsigned room_used_ = 0;
  alignas(64) Atomic<std::uint64_t> written_{0};
  // Fields of the consumers.
  alignas(64) Atomic<std::uint64_t> read_{0};
  Chunk* first_;
  unsigned room_read_ = 0;
  alignas(64) Inbox<Chunk, Atomic> returned_;
};

}  // namespace tandem::base
