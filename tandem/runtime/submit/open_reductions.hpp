// tandem/runtime/submit/open_reductions.hpp: sums to which submitted tasks have added, and which no later task has combined yet.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

namespace tandem::runtime {

class Handle;

/// A set of data in the order of their groups, but that data which leaves gives its place to the last one. So the order follows
/// from the calls alone, and each call costs the same however many sums are open.
///
/// Threads: the submitting thread.
class OpenReductions {
 public:
  /// Data that is in it stays where it is.
  void add(Handle& handle) {
    if (places_.try_emplace(&handle, handles_.size()).second) handles_.push_back(&handle);
  }
  /// Of data that is not in it: nothing.
  void remove(Handle& handle) noexcept {
    const auto found = places_.find(&handle);
    if (found == places_.end()) return;
    const std::size_t place = found->second;
    places_.erase(found);
    Handle* const last = handles_.back();
    handles_.pop_back();
    if (last == &handle) return;
    handles_[place] = last;
    places_.find(last)->second = place;
  }
  bool empty() const noexcept { return handles_.empty(); }
  std::size_t size() const noexcept { return handles_.size(); }
  Handle& last() const noexcept { return *handles_.back(); }

 private:
  std::vector<Handle*> handles_;
  std::unordered_map<const Handle*, std::size_t> places_;  ///< of each in `handles_`
};

}  // namespace tandem::runtime
