// tandem/base/lru_table.hpp: a table of bounded size, from which leaves what was used longest ago.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <utility>

namespace tandem::base {

/// Values by a hash of what they belong to, `most` of them at most. A further one takes the place of the value that was used longest ago, so the memory
/// is bounded whatever a program does, and what it does now is known. All calls cost constant time. Not thread-safe.
template <class Value>
class LruTable {
 public:
  /// `most` is not 0.
  explicit LruTable(std::size_t most) : most_(most) {}

  /// Null: it has none. Not a use. Valid until the next `use`.
  const Value* find(std::uint64_t key) const noexcept {
    const auto known = places_.find(key);
    return known == places_.end() ? nullptr : &known->second->second;
  }
  /// The value of `key`, a new one if it has none, which is used now. Valid until it leaves, which is not before `most` further ones have been used.
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
