// tandem/comm/engine/held_broadcasts.hpp: broadcasts that were posted and have not started, and when to look at each of
// them again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace tandem::comm::internal {

/// Broadcasts that are held, `Held`, each with an `id` that grows in the order of posting, and a `key()`, whose
/// broadcasts start in that order. `Key` is what `key()` returns, and `Hash` its hash.
///
/// Cost. Only the oldest of a key may start, so only that one has a time of its next look. A pass (`start_due`) checks
/// those whose time has come, once each, and the next of a key when one has started. So all others cost a pass nothing,
/// however many they are; neither does the question when the next pass is due.
///
/// Not thread-safe: under the endpoint's lock. The held broadcasts outlive their places here.
template <class Held, class Key, class Hash>
class BasicHeldBroadcasts {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  /// What a look has found.
  struct Look {
    bool started = false;         ///< the broadcast was removed and has started
    std::int64_t again_ns = 0;    ///< else: the time from which a pass looks again; 0: each pass
    std::int64_t due_ns = 0;      ///< else: the time by which there must be a pass, even without other events
  };

  /// `left` counts the held broadcasts and other work.
  explicit BasicHeldBroadcasts(std::size_t& left) noexcept : left_(&left) {}
  BasicHeldBroadcasts(const BasicHeldBroadcasts&) = delete;
  BasicHeldBroadcasts& operator=(const BasicHeldBroadcasts&) = delete;
  ~BasicHeldBroadcasts() { clear(); }

  bool empty() const noexcept { return all_.empty(); }
  std::size_t size() const noexcept { return all_.size(); }
  /// The id of the oldest one, which exists.
  std::uint64_t first_id() const noexcept { return all_.begin()->first; }
  /// When a pass must look again; `kNever`: there is none.
  std::int64_t due_ns() const noexcept { return dues_.empty() ? kNever : dues_.begin()->first; }

  void add(Held& held) {
    all_.emplace(held.id, Entry{&held});
    ++*left_;
    std::deque<Held*>& same_key = keys_[held.key()];
    same_key.push_back(&held);
    if (same_key.size() == 1) set_times(held.id, 0, 0);
  }
  /// Removes one that starts or is cancelled. The present pass, or the next one, checks the next of its key.
  void remove(const Held& held) {
    const auto found = all_.find(held.id);
    forget_times(found->first, found->second);
    all_.erase(found);
    --*left_;
    const auto same_key = keys_.find(held.key());
    std::deque<Held*>& others = same_key->second;
    const bool was_first = others.front() == &held;
    if (was_first) others.pop_front();
    else others.erase(std::find(others.begin(), others.end(), &held));
    if (others.empty()) keys_.erase(same_key);
    else if (was_first) set_times(others.front()->id, 0, 0);
  }
  void clear() noexcept {
    *left_ -= all_.size();
    all_.clear();
    keys_.clear();
    looks_.clear();
    dues_.clear();
  }
  /// Makes the next pass check each that may start, since something changed for all.
  void look_at_all() {
    for (const auto& [key, same_key] : keys_) set_times(same_key.front()->id, 0, 0);
  }
  /// The held broadcasts of a key, oldest first; null: none. Valid until one is added or removed.
  const std::deque<Held*>* of_key(const Key& key) const {
    const auto found = keys_.find(key);
    return found != keys_.end() ? &found->second : nullptr;
  }

  /// Calls `look(Held&) -> Look` for those whose time has come, in the order of posting. `look` may remove the one that
  /// it gets, and add others.
  template <class LookAt>
  void start_due(std::int64_t now_ns, LookAt look) {
    std::set<std::uint64_t> due;
    for (auto next = looks_.begin(); next != looks_.end() && next->first <= now_ns; ++next) due.insert(next->second);
    while (!due.empty()) {
      const std::uint64_t id = due.extract(due.begin()).value();
      const auto found = all_.find(id);
      if (found == all_.end()) continue;
      const Key key = found->second.held->key();
      const Look answer = look(*found->second.held);
      if (!answer.started) {
        set_times(id, answer.again_ns, answer.due_ns);
      } else if (const auto* next = of_key(key)) {
        due.insert(next->front()->id);
      }
    }
  }

 private:
  using Times = std::set<std::pair<std::int64_t, std::uint64_t>>;
  struct Entry {
    Held* held;
    bool timed = false;  ///< the oldest of its key, and so in both sets
    std::int64_t look_ns = 0, due_ns = 0;
  };

  void set_times(std::uint64_t id, std::int64_t look_ns, std::int64_t due_ns) {
    Entry& entry = all_.find(id)->second;
    forget_times(id, entry);
    entry.timed = true;
    entry.look_ns = look_ns;
    entry.due_ns = due_ns;
    looks_.emplace(look_ns, id);
    dues_.emplace(due_ns, id);
  }
  void forget_times(std::uint64_t id, Entry& entry) {
    if (!std::exchange(entry.timed, false)) return;
    looks_.erase({entry.look_ns, id});
    dues_.erase({entry.due_ns, id});
  }

  std::map<std::uint64_t, Entry> all_;
  std::unordered_map<Key, std::deque<Held*>, Hash> keys_;  ///< those of a key, the oldest first
  Times looks_, dues_;                                     ///< of the oldest of each key
  std::size_t* left_;
};

/// How many ranks at the beginning of a list need not be waited for. They are asked in order, and a rank that need not
/// be waited for once never must: so all looks together ask each rank once, and one more per look.
class WaitingRanks {
 public:
  /// Whether one of `count` ranks has to be waited for, as `waits(i)` says.
  template <class Waits>
  bool any(std::size_t count, Waits waits) {
    while (known_ < count && !waits(known_)) ++known_;
    return known_ < count;
  }
  /// Starts again, since the list has changed.
  void ask_again() noexcept { known_ = 0; }

 private:
  std::size_t known_ = 0;  ///< ranks before it need not be waited for
};

}  // namespace tandem::comm::internal
