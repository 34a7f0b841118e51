// tandem/base/lru_table.hpp: a table of bounded size that drops the least recently used value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <utility>

namespace tandem::base {

/// At most `most` values by a hash of their key. A further one replaces the least recently used value, so the memory is
/// bounded for any program, and recent values are known. All calls cost constant time. Not thread-safe.
template <class Value>
class LruTable {
 public:
  /// `most` is not 0.
  explicit LruTable(std::size_t most) : most_(most) {}

  /// The value of `key`, without using it; null: none. Valid until the next `use`.
  const Value* find(std::uint64_t key) const noexcept {
    const auto known = places_.find(key);
    return known == places_.end() ? nullptr : &known->second->second;
  }
  /// Uses the value of `key`, a new one if it has none. Valid until at least `most` further keys have been used.
  Value& use(std::uint64_t key) {
    const auto [known, is_new] = places_.try_emplace(key);
    if (!is_new) {
      values_.splice(values_.begin(), values_, known->second);
      return known->second->second;
    }
    try {
      values_.emplace_front(key, Value());
    } catch (...) {
      places_.erase(known);
      throw;
    }
    known->second = values_.begin();
    if (values_.size() > most_) {
      places_.erase(values_.back().first);
      values_.pop_back();
    }
    return values_.front().second;
  }
  std::size_t size() const noexcept { return values_.size(); }

 private:
  using Values = std::list<std::pair<std::uint64_t, Value>>;

  const std::size_t most_;
  Values values_;  ///< the one that was used last first
  std::unordered_map<std::uint64_t, typename Values::iterator> places_;
};

}  // namespace tandem::base
