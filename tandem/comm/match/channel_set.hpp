// tandem/comm/match/channel_set.hpp: which classes of wildcards were ever used on which channels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::comm::internal {

/// A small set of (channel, class): programs register tens of channels, and few see wildcards. Not thread-safe.
class ChannelSet {
 public:
  /// Bit `c` is set when (channel, class c) is in the set. Constant time for an empty set and for the channel asked
  /// last.
  unsigned classes_of(std::uint32_t channel) const noexcept {
    if (entries_.empty()) return 0;
    if (entries_[recent_].channel == channel) return entries_[recent_].classes;
    const auto found = std::lower_bound(entries_.begin(), entries_.end(), channel, before);
    if (found == entries_.end() || found->channel != channel) return 0;
    recent_ = static_cast<std::size_t>(found - entries_.begin());
    return found->classes;
  }

  void add(std::uint32_t channel, unsigned wild_class) {
    auto found = std::lower_bound(entries_.begin(), entries_.end(), channel, before);
    if (found == entries_.end() || found->channel != channel) found = entries_.insert(found, Entry{channel, 0});
    found->classes |= 1u << wild_class;
    recent_ = static_cast<std::size_t>(found - entries_.begin());
  }

  std::size_t memory_bytes() const noexcept { return entries_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    std::uint32_t channel;
    unsigned classes;
  };
  static bool before(const Entry& entry, std::uint32_t channel) noexcept { return entry.channel < channel; }

  std::vector<Entry> entries_;  // sorted by channel
  mutable std::size_t recent_ = 0;
};

}  // namespace tandem::comm::internal
