// tandem/runtime/sched/queues/highest_first.hpp: values by priority, in constant time while few priorities are alive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace tandem::runtime {

/// Maps each present priority to a value; the highest is at hand. Not thread-safe: its owner locks.
///
/// The highest priorities, at most `kMostAtHand`, are in a sorted array, the highest last; all others are lower and in
/// a map. When the array is full, its lower half moves to the map; when it empties, it takes as many of the highest
/// from there. So two such moves are at least half an array of calls apart, and a call moves a constant number of
/// values on average, whatever the number of priorities.
///
/// Cost: constant for the highest priority; a binary search for one in the array; the logarithm of their number for
/// others. Allocates only with more than `kMostAtHand` priorities.
template <class Value>
class HighestFirst {
 public:
  static constexpr std::size_t kMostAtHand = 64;

  HighestFirst() { high_.reserve(kMostAtHand); }

  /// Whether no priority is present.
  bool empty() const noexcept { return high_.empty(); }
  /// The highest priority; one must be present.
  std::int32_t top_priority() const noexcept { return high_.back().priority; }
  /// Value of the highest priority. Valid until the next call that is not const.
  Value& top() noexcept { return high_.back().value; }
  /// Removes the highest priority; one must be present.
  void pop_top() noexcept {
    high_.pop_back();
    if (high_.empty() && !low_.empty()) [[unlikely]] take_from_low();
  }
  /// The value of `priority`; a new one when it is not present. Valid until the next call that is not const.
  Value& operator[](std::int32_t priority) {
    if (high_.empty() || high_.back().priority < priority) {
      if (high_.size() == kMostAtHand) [[unlikely]] move_to_low();
      return high_.emplace_back(Entry{priority, Value()}).value;
    }
    if (high_.back().priority == priority) return high_.back().value;
    return find_or_insert(priority);
  }

  /// Calls `look(priority, value)` for each, the lowest first.
  template <class Look>
  void for_each(const Look& look) const {
    for (const auto& [priority, value] : low_) look(priority, value);
    for (const Entry& entry : high_) look(entry.priority, entry.value);
  }
  /// Whether array and map are as stated above. Walks everything.
  bool check_invariants() const noexcept {
    const auto by_priority = [](const Entry& a, const Entry& b) { return a.priority >= b.priority; };
    if (high_.size() > kMostAtHand || (high_.empty() && !low_.empty())) return false;
    if (std::ranges::adjacent_find(high_, by_priority) != high_.end()) return false;
    return low_.empty() || std::prev(low_.end())->first < high_.front().priority;
  }

 private:
  struct Entry {
    std::int32_t priority;
    Value value;
  };

  Value& find_or_insert(std::int32_t priority) {
    if (priority < high_.front().priority && !low_.empty()) return low_[priority];
    const auto at = std::ranges::lower_bound(high_, priority, {}, &Entry::priority);
    if (at->priority == priority) return at->value;
    if (high_.size() < kMostAtHand) return high_.insert(at, Entry{priority, Value()})->value;
    move_to_low();
    return find_or_insert(priority);
  }
  /// Moves the lower half of the array to the map.
  void move_to_low() {
    struct Moved {  // if memory runs out, the values before have moved
      std::vector<Entry>& from;
      std::ptrdiff_t count = 0;
      ~Moved() { from.erase(from.begin(), from.begin() + count); }
    } moved{high_};
    for (; moved.count < static_cast<std::ptrdiff_t>(kMostAtHand / 2); ++moved.count) {
      Entry& entry = high_[static_cast<std::size_t>(moved.count)];
      low_.emplace_hint(low_.end(), entry.priority, std::move(entry.value));
    }
  }
  /// Moves the highest priorities of the map to the array.
  void take_from_low() noexcept {
    const auto count = static_cast<std::ptrdiff_t>(std::min(low_.size(), kMostAtHand / 2));
    const auto first = std::prev(low_.end(), count);
    for (auto at = first; at != low_.end(); ++at) high_.push_back(Entry{at->first, std::move(at->second)});
    low_.erase(first, low_.end());
  }

  std::vector<Entry> high_;            ///< the highest last
  std::map<std::int32_t, Value> low_;  ///< all are lower than those in `high_`
};

}  // namespace tandem::runtime
