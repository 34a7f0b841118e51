// tandem/runtime/submit/open_reductions.hpp: sums with submitted contributions that no later task has combined yet.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

namespace tandem::runtime {

class Handle;

/// A set of data in the order of their groups; the last one takes the place of data that is removed. So the order
/// follows from the calls alone, and a call costs the same however many sums are open.
///
/// Used by the submitting thread.
class OpenReductions {
 public:
  /// Adds data; data that is in the set keeps its place.
  void add(Handle& handle) {
    if (places_.try_emplace(&handle, handles_.size()).second) handles_.push_back(&handle);
  }
  /// Removes data, if it is in the set.
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
  std::unordered_map<const Handle*, std::size_t> places_;  ///< place in `handles_` of each
};

}  // namespace tandem::runtime
