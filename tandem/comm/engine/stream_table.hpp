// tandem/comm/engine/stream_table.hpp: the streams between two ranks by their numbers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tandem::comm::internal {

/// Open addressing with linear probing, at most half full. Most numbers ascend, but a peer chooses its own, so a
/// multiplication spreads them. A few streams at a time cost no allocation, and an empty table after a burst no memory.
/// Not thread-safe; does not own the streams.
template <class Stream>
class StreamTable {
 public:
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  bool contains(std::uint32_t number) const noexcept { return find(number) != nullptr; }
  /// The stream of that number, or null.
  Stream* find(std::uint32_t number) const noexcept {
    if (size_ == 0) return nullptr;
    for (std::size_t at = home(number);; at = next(at)) {
      const Entry& entry = entries_[at];
      if (entry.stream == nullptr || entry.number == number) return entry.stream;
    }
  }

  /// Adds a stream. When a faulty peer uses a number twice, `find` returns one of the streams.
  void insert(std::uint32_t number, Stream& stream) {
    if (2 * (size_ + 1) > entries_.size()) resize(std::max(kLeast, 2 * entries_.size()));
    put(number, stream);
    ++size_;
  }

  /// Removes a stream; no effect when it is not there.
  void erase(std::uint32_t number, const Stream& stream) {
    if (size_ == 0) return;
    std::size_t hole = home(number);
    for (; entries_[hole].number != number || entries_[hole].stream != &stream; hole = next(hole)) {
      if (entries_[hole].stream == nullptr) return;
    }
    // Entries that could not be found behind the hole move into it.
    for (std::size_t at = next(hole); entries_[at].stream != nullptr; at = next(at)) {
      const std::size_t away = (at - home(entries_[at].number)) & (entries_.size() - 1);
      if (away < ((at - hole) & (entries_.size() - 1))) continue;
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole].stream = nullptr;
    if (--size_ == 0 && entries_.size() > kKept) entries_ = std::vector<Entry>();
  }

  /// Calls `act` for each stream, in no order. `act` does not change the table.
  template <class Act>
  void for_each(Act act) const {
    for (const Entry& entry : entries_) {
      if (entry.stream != nullptr) act(*entry.stream);
    }
  }
  std::vector<Stream*> all() const {
    std::vector<Stream*> streams;
    streams.reserve(size_);
    for_each([&](Stream& stream) { streams.push_back(&stream); });
    return streams;
  }

 private:
  struct Entry {
    std::uint32_t number = 0;
    Stream* stream = nullptr;
  };
  static constexpr std::size_t kLeast = 8, kKept = 64;

  std::size_t home(std::uint32_t number) const noexcept {
    const std::uint32_t spread = number * 0x9e3779b9U;  // 2^32 divided by the golden ratio
    return (spread >> 12) & (entries_.size() - 1);
  }
  std::size_t next(std::size_t at) const noexcept { return (at + 1) & (entries_.size() - 1); }
  void put(std::uint32_t number, Stream& stream) noexcept {
    std::size_t at = home(number);
    while (entries_[at].stream != nullptr) at = next(at);
    entries_[at] = {number, &stream};
  }
  void resize(std::size_t capacity) {
    const std::vector<Entry> old = std::exchange(entries_, std::vector<Entry>(capacity));
    for (const Entry& entry : old) {
      if (entry.stream != nullptr) put(entry.number, *entry.stream);
    }
  }

  std::vector<Entry> entries_;  ///< a power of two, or none
  std::size_t size_ = 0;
};

}  // namespace tandem::comm::internal
