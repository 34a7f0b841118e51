// tandem/comm/transport/ucx/reorder.hpp: packets that came too early wait here for earlier ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "tandem/base/assert.hpp"

namespace tandem::comm::internal::ucx {

/// Numbered items that may come in any order and are taken in the order of their numbers, from 0. Bounded: a number
/// `window` or more ahead is refused. Invariant: no waiting number is below `next`. One thread.
template <class Item>
class Reorder {
 public:
  explicit Reorder(std::uint64_t window) : window_(window) {}

  std::uint64_t next() const noexcept { return next_; }
  std::size_t size() const noexcept { return waiting_.size(); }
  /// Whether `number` can be accepted: not seen before, and not too far ahead.
  bool acceptable(std::uint64_t number) const {
    return number >= next_ && number - next_ < window_ && !waiting_.contains(number);
  }
  bool ready() const { return !waiting_.empty() && waiting_.begin()->first == next_; }

  void add(std::uint64_t number, Item item) {
    TANDEM_ASSERT(acceptable(number));
    waiting_.emplace(number, std::move(item));
  }
  /// Takes the next item; only when `ready`.
  Item take() {
    TANDEM_ASSERT(ready());
    Item item = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    ++next_;
    return item;
  }
  /// Notes that the next item was processed without waiting here.
  void skip() noexcept { ++next_; }

  /// Passes all waiting items to `drop`, in order.
  template <class Drop>
  void clear(Drop drop) {
    for (auto& [number, item] : waiting_) drop(item);
    waiting_.clear();
  }

 private:
  std::uint64_t window_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Item> waiting_;
};

}  // namespace tandem::comm::internal::ucx
