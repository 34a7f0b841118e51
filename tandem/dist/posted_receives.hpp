// tandem/dist/posted_receives.hpp: which messages other ranks are ready to receive, and the sends that wait for that.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

namespace tandem::dist {

struct Bag;

/// Pairs the notices of other ranks, each of which has posted a receive, with the sends of this rank.
///
/// Notices and sends of one rank, channel and tag are paired in the order in which they come, as messages and receives are. A send that is
/// paired finds its receive posted, whichever of those it is. Any thread.
class PostedReceives {
 public:
  struct Key {
    std::uint32_t rank = 0;     ///< that receives
    std::uint32_t channel = 0;
    std::uint64_t tag = 0;
    bool operator<(const Key& other) const noexcept {
      return std::tie(rank, channel, tag) < std::tie(other.rank, other.channel, other.tag);
    }
  };
  enum class Answer {
    posted,  ///< the receive is posted
    later,   ///< `note` will return the bag
    never,   ///< the job has failed
  };

  /// `bag` has a message for a recipient.
  Answer expect(const Key& key, const std::shared_ptr<Bag>& bag) {
    const std::lock_guard guard(mutex_);
    if (ended_) return Answer::never;
    Entry& entry = entries_[key];
    if (entry.posted == 0) {
      entry.waiting.push_back(bag);
      return Answer::later;
    }
    if (--entry.posted == 0) entries_.erase(key);
    return Answer::posted;
  }
  /// A receive is posted. Returns the bag that has waited for it longest, or null.
  std::shared_ptr<Bag> note(const Key& key) {
    const std::lock_guard guard(mutex_);
    if (ended_) return nullptr;
    Entry& entry = entries_[key];
    if (entry.waiting.empty()) {
      ++entry.posted;
      return nullptr;
    }
    std::shared_ptr<Bag> bag = std::move(entry.waiting.front());
    entry.waiting.pop_front();
    if (entry.waiting.empty()) entries_.erase(key);
    return bag;
  }
  /// The job has failed: no further notice counts. Returns the bags that wait, each once for each of its recipients.
  std::vector<std::shared_ptr<Bag>> end() {
    const std::lock_guard guard(mutex_);
    ended_ = true;
    std::vector<std::shared_ptr<Bag>> waiting;
    for (auto& [key, entry] : entries_)
      for (std::shared_ptr<Bag>& bag : entry.waiting) waiting.push_back(std::move(bag));
    entries_.clear();
    return waiting;
  }
  /// Calls `visit(key, bag)` for each send that waits.
  void for_each_waiting(const std::function<void(const Key&, Bag&)>& visit) const {
    const std::lock_guard guard(mutex_);
    for (const auto& [key, entry] : entries_)
      for (const std::shared_ptr<Bag>& bag : entry.waiting) visit(key, *bag);
  }

 private:
  struct Entry {
    std::uint64_t posted = 0;                  ///< notices without a send
    std::deque<std::shared_ptr<Bag>> waiting;  ///< sends without a notice
  };
  mutable std::mutex mutex_;  ///< guards all below
  std::map<Key, Entry> entries_;
  bool ended_ = false;
};

}  // namespace tandem::dist
