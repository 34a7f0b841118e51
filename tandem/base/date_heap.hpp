// tandem/base/date_heap.hpp: dates of numbered things, the earliest first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace tandem::base {

/// Things with small numbers, of which each has a date or none. A heap with four children a node, so that a change
/// moves few entries, and allocates nothing once there is room for all numbers. Not thread-safe.
class DateHeap {
 public:
  struct Entry {
    std::int64_t date_ns = 0;
    std::size_t number = 0;
  };

  /// Makes room for the numbers below `count`.
  void reserve(std::size_t count) {
    places_.resize(std::max(count, places_.size()), kNowhere);
    heap_.reserve(count);
  }
  bool empty() const noexcept { return heap_.empty(); }
  /// The earliest; one of them, if several are. There is one.
  const Entry& front() const noexcept { return heap_.front(); }
  /// The earliest date without that of `number`; `none` if there is no other one.
  std::int64_t earliest_without(std::size_t number, std::int64_t none) const noexcept {
    if (heap_.empty()) return none;
    if (heap_.front().number != number) return heap_.front().date_ns;
    std::int64_t earliest = none;
    for (std::size_t child = 1; child <= kChildren && child < heap_.size(); ++child)
      earliest = std::min(earliest, heap_[child].date_ns);
    return earliest;
  }

  /// Gives `number`, for which there is room, this date, instead of the one that it may have.
  void set(std::size_t number, std::int64_t date_ns) {
    std::size_t place = places_[number];
    if (place == kNowhere) {
      place = heap_.size();
      heap_.push_back({date_ns, number});
    }
    settle({date_ns, number}, place);
  }
  /// Takes the date of `number` away, if it has one.
  void remove(std::size_t number) {
    const std::size_t place = std::exchange(places_[number], kNowhere);
    if (place == kNowhere) return;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (last.number != number) settle(last, place);
  }

 private:
  static constexpr std::size_t kChildren = 4;
  static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

  void put(const Entry& entry, std::size_t place) {
    heap_[place] = entry;
    places_[entry.number] = place;
  }

  /// Puts the entry where it belongs, above or below `place`, whose own entry is replaced.
  void settle(const Entry& entry, std::size_t place) {
    while (place > 0 && heap_[(place - 1) / kChildren].date_ns > entry.date_ns) {
      put(heap_[(place - 1) / kChildren], place);
      place = (place - 1) / kChildren;
    }
    for (;;) {
      std::size_t least = place;
      std::int64_t least_ns = entry.date_ns;
      const std::size_t first = place * kChildren + 1;
      for (std::size_t child = first; child < first + kChildren && child < heap_.size(); ++child)
        if (heap_[child].date_ns < least_ns) least = child, least_ns = heap_[child].date_ns;
      if (least == place) break;
      put(heap_[least], place);
      place = least;
    }
    put(entry, place);
  }

  std::vector<Entry> heap_;
  std::vector<std::size_t> places_;  ///< by number: its place in the heap
};

}  // namespace tandem::base
