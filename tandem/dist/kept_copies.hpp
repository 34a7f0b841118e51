// tandem/dist/kept_copies.hpp: the copies that a rank keeps of another's data, derived by both. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

namespace tandem::dist {

/// The copies that one receiver keeps of one sender's data, the least recently used last, at most `most_bytes` of them
/// together.
///
/// Both ends apply the same uses to an object of this class, in the order of the flow. So both know at each position
/// what the receiver still has, without a message, and a dropped copy is sent again. Data larger than `most_bytes` is
/// not kept at all. Threads: the submitting thread.
class KeptCopies {
 public:
  explicit KeptCopies(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  /// Notes that a task of the receiver sees the data. True: it was kept since its last use. Otherwise it is sent now,
  /// and kept from here on; `dropped(id)` is called for copies that are no longer kept, and for `id` itself if it is
  /// too large.
  template <class Dropped>
  bool use(std::uint32_t id, std::size_t bytes, Dropped dropped) {
    if (const auto at = where_.find(id); at != where_.end()) {
      order_.splice(order_.begin(), order_, at->second);
      return true;
    }
    if (bytes > most_bytes_) {
      dropped(id);
      return false;
    }
    order_.push_front({id, bytes});
    where_[id] = order_.begin();
    bytes_ += bytes;
    while (bytes_ > most_bytes_) {
      const std::uint32_t last = order_.back().id;
      forget(last);
      dropped(last);
    }
    return false;
  }

  /// Forgets data of which the version was overwritten, or which was flushed.
  void forget(std::uint32_t id) {
    const auto at = where_.find(id);
    if (at == where_.end()) return;
    bytes_ -= at->second->bytes;
    order_.erase(at->second);
    where_.erase(at);
  }

  bool contains(std::uint32_t id) const { return where_.contains(id); }
  std::size_t bytes() const noexcept { return bytes_; }
  /// False: the list, the index and the sum do not agree, or too much is kept.
  bool check_invariants() const {
    std::size_t bytes = 0;
    for (auto at = order_.begin(); at != order_.end(); ++at) {
      bytes += at->bytes;
      const auto known = where_.find(at->id);
      if (known == where_.end() || &*known->second != &*at) return false;
    }
    return bytes == bytes_ && bytes_ <= most_bytes_ && where_.size() == order_.size();
  }

 private:
  struct Entry {
    std::uint32_t id;
    std::size_t bytes;
  };
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::list<Entry> order_;
  std::unordered_map<std::uint32_t, std::list<Entry>::iterator> where_;
};

}  // namespace tandem::dist
