// tools/launcher/poll.hpp: what one round of the launcher's loop waits for.
#pragma once

#include <poll.h>

#include <unordered_map>
#include <vector>

namespace tandem::tools {

/// Descriptors and what happened to them. Each part of the launcher adds its own before the wait and queries them after
/// it; a descriptor has one owner. Not thread-safe.
class PollSet {
 public:
  void clear() {
    waited_.clear();
    places_.clear();
  }
  /// Adds a descriptor. A negative number, of a closed one, adds nothing.
  void watch(int descriptor, short events) {
    if (descriptor < 0) return;
    places_[descriptor] = waited_.size();
    waited_.push_back({descriptor, events, 0});
  }
  /// Sleeps until something happens, for at most `limit_ms`; -1: without limit.
  void wait(int limit_ms) {
    if (::poll(waited_.data(), waited_.size(), limit_ms) > 0) return;
    for (pollfd& entry : waited_) entry.revents = 0;  // no events, or a signal interrupted the wait
  }
  /// Whether the descriptor was watched and got what it waited for, its end, or an error.
  bool ready(int descriptor) const {
    const auto place = places_.find(descriptor);
    return place != places_.end() && waited_[place->second].revents != 0;
  }

 private:
  std::vector<pollfd> waited_;
  std::unordered_map<int, std::size_t> places_;
};

}  // namespace tandem::tools
