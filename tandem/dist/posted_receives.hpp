// tandem/dist/posted_receives.hpp: posted receives of other ranks, and the sends that wait for them.
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

/// Pairs the notices of other ranks, which announce posted receives, with the sends of this rank.
///
/// Notices and sends of one rank, channel and tag are paired in their order, as messages and receives are. A paired
/// send finds its receive posted, even if it is paired with the notice of another. Any thread.
class PostedReceives {
 public:
  struct Key {
    std::uint32_t rank = 0;     ///< rank that receives
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

  /// Notes that `bag` has a message for a recipient.
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
  /// Notes a posted receive. Returns the bag that has waited for it longest, or null.
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
  /// Ends the pairing after a failure of the job: no further notice counts. Returns the waiting bags, each once for
  /// each of its recipients.
  std::vector<std::shared_ptr<Bag>> end() {
    const std::lock_guard guard(mutex_);
    ended_ = true;
    std::vector<std::shared_ptr<Bag>> waiting;
    for (auto& [key, entry] : entries_)
      for (std::shared_ptr<Bag>& bag : entry.waiting) waiting.push_back(std::move(bag));
    entries_.clear();
    return waiting;
  }
  /// Calls `visit(key, bag)` for each waiting send.
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
  mutable std::mutex mutex_;  ///< guards all members below
  std::map<Key, Entry> entries_;
  bool ended_ = false;
};

}  // namespace tandem::dist
