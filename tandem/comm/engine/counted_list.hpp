// tandem/comm/engine/counted_list.hpp: lists of what is left to do, with one counter that is 0 when all are empty.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tandem::comm::internal {

/// A list whose entries count, with those of other lists, in one number. Most messages leave nothing to do, which one
/// look at the number shows. Not thread-safe; the number outlives the list.
template <class T>
class CountedList {
 public:
  explicit CountedList(std::size_t& total) noexcept : total_(&total) {}
  CountedList(const CountedList&) = delete;
  CountedList& operator=(const CountedList&) = delete;
  ~CountedList() { clear(); }

  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  T& operator[](std::size_t i) noexcept { return entries_[i]; }
  T& back() noexcept { return entries_.back(); }
  auto begin() const noexcept { return entries_.begin(); }
  auto end() const noexcept { return entries_.end(); }

  void push_back(T entry) {
    entries_.push_back(std::move(entry));
    ++*total_;
  }
  void pop_back() noexcept {
    entries_.pop_back();
    --*total_;
  }
  void clear() noexcept {
    *total_ -= entries_.size();
    entries_.clear();
  }
  template <class Predicate>
  void remove_if(Predicate predicate) { *total_ -= std::erase_if(entries_, predicate); }
  void remove(const T& entry) { *total_ -= std::erase(entries_, entry); }

  /// Takes all entries out of the list.
  std::vector<T> take(std::vector<T> instead = {}) noexcept {
    instead.clear();
    *total_ -= entries_.size();
    return std::exchange(entries_, std::move(instead));
  }

 private:
  std::vector<T> entries_;
  std::size_t* total_;
};

}  // namespace tandem::comm::internal
