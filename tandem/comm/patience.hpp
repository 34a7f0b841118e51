// tandem/comm/patience.hpp: how long a waiting thread polls before it sleeps, learnt from recent waits. Pure.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

namespace tandem::comm::internal {

/// What the waiting threads of one endpoint have learnt together.
///
/// Polling pays when the event comes within the time of a few wake-ups, and when no other thread wants the core: where
/// ranks outnumber cores, a polling thread keeps the core from the rank that it waits for. The first is learnt from the
/// length of waits. The second shows in `sched_yield`: it returns at once when no other thread wants the core, so two
/// slow calls in a row mean that cores are overcommitted (a crowd). Then no thread polls for a while, which doubles as
/// long as the crowd lasts.
///
/// A caller may announce an event (`expect`): then no thread sleeps before it is there or late, unless there is a
/// crowd.
///
/// Thread-safe; the values are hints, so that all accesses are relaxed.
class Patience {
 public:
  /// `most_ns` is the longest time of polling without an event; 0: no polling.
  explicit Patience(std::int64_t most_ns) noexcept
      : most_ns_(most_ns), budget_ns_(most_ns), crowded_until_ns_(most_ns > 0 ? INT64_MIN / 2 : INT64_MAX) {}

  /// Time for which to poll without an event.
  std::int64_t budget_ns(std::int64_t now_ns) const noexcept {
    if (now_ns < crowded_until_ns_.load(relaxed)) return 0;
    return now_ns < expected_until_ns_.load(relaxed) ? INT64_MAX : budget_ns_.load(relaxed);
  }
  /// Polls between two reads of the clock, which would delay an event that comes within a microsecond.
  unsigned polls_per_look(std::int64_t now_ns) const noexcept {
    return now_ns < crowded_until_ns_.load(relaxed) ? 1 : polls_per_look_.load(relaxed);
  }

  /// Announces an event before then. The last call counts.
  void expect(std::int64_t until_ns) noexcept { expected_until_ns_.store(until_ns, relaxed); }
  /// Notes that an event came while a thread polled.
  void caught() noexcept { set_budget(2 * budget_ns_.load(relaxed)); }
  /// Notes that an event came to a sleeper, `took_ns` after the one before.
  void waited(std::int64_t took_ns) noexcept {
    const std::int64_t budget = budget_ns_.load(relaxed);
    set_budget(took_ns <= 2 * most_ns_ ? 2 * budget : budget / 2);
  }
  /// Notes that `sched_yield` took `took_ns`. True: cores are overcommitted.
  bool yielded(std::int64_t took_ns, std::int64_t now_ns) noexcept {
    if (took_ns < kSlowYieldNs) {
      if (slow_yields_.load(relaxed) != 0) slow_yields_.store(0, relaxed);
      return false;
    }
    if (slow_yields_.fetch_add(1, relaxed) == 0) return false;
    slow_yields_.store(0, relaxed);
    crowded(now_ns);
    return true;
  }
  /// Notes that the polls between two reads of the clock took `took_ns`.
  void looked_after(std::int64_t took_ns) noexcept {
    const unsigned polls = polls_per_look_.load(relaxed);
    if (took_ns > kLongestLookNs && polls > 1) polls_per_look_.store(polls / 2, relaxed);
    else if (took_ns < kLongestLookNs / 4 && polls < kMostPolls) polls_per_look_.store(2 * polls, relaxed);
  }

  static constexpr std::int64_t kLeastNs = 1'000;           ///< lower limit of the budget
  static constexpr std::int64_t kSlowYieldNs = 4'000;       ///< a yield that took longer let another thread work
  static constexpr std::int64_t kShortestCrowdNs = 1'000'000;
  static constexpr std::int64_t kLongestCrowdNs = 64'000'000;
  static constexpr std::int64_t kLongestLookNs = 4'000;
  static constexpr unsigned kMostPolls = 64;

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;

  void set_budget(std::int64_t wanted_ns) noexcept {
    const std::int64_t next = std::clamp(wanted_ns, std::min(kLeastNs, most_ns_), most_ns_);
    if (next != budget_ns_.load(relaxed)) budget_ns_.store(next, relaxed);
  }

  void crowded(std::int64_t now_ns) noexcept {
    const bool again = now_ns - crowded_until_ns_.load(relaxed) < kLongestCrowdNs;
    const std::int64_t next = again ? std::min(2 * crowd_ns_.load(relaxed), kLongestCrowdNs) : kShortestCrowdNs;
    crowd_ns_.store(next, relaxed);
    crowded_until_ns_.store(now_ns + next, relaxed);
  }

  const std::int64_t most_ns_;
  std::atomic<std::int64_t> budget_ns_;
  std::atomic<std::int64_t> crowded_until_ns_;
  std::atomic<std::int64_t> expected_until_ns_{INT64_MIN};
  std::atomic<std::int64_t> crowd_ns_{kShortestCrowdNs};
  std::atomic<unsigned> polls_per_look_{kMostPolls};
  std::atomic<unsigned> slow_yields_{0};  // in a row
};

/// One waiter's polling. Not thread-safe.
class Polling {
 public:
  enum class Next {
    poll,   ///< go on, without reading the clock
    yield,  ///< offer the core to others, call `yielded`, and go on
    sleep,  ///< polling does not pay any more; call `slept` afterwards
  };

  Polling(Patience& patience, std::int64_t now_ns) noexcept
      : patience_(&patience), now_ns_(now_ns), polls_left_(patience.polls_per_look(now_ns)) {}

  /// The time of the last read of the clock.
  std::int64_t now_ns() const noexcept { return now_ns_; }

  /// Called after each poll, with its outcome. Reads the clock when that is due.
  template <class Clock>
  Next polled(bool found, const Clock& clock) {
    found_since_look_ |= found;
    if (found && idle_since_ns_ != 0) {
      patience_->caught();
      idle_since_ns_ = 0;
    }
    if (--polls_left_ > 0) return Next::poll;
    const std::int64_t last_ns = now_ns_;
    now_ns_ = clock();
    // the work took its own time
    if (!std::exchange(found_since_look_, false)) patience_->looked_after(now_ns_ - last_ns);
    polls_left_ = patience_->polls_per_look(now_ns_);
    if (found) return patience_->budget_ns(now_ns_) > 0 ? Next::poll : Next::sleep;
    if (idle_since_ns_ == 0) idle_since_ns_ = now_ns_;
    return now_ns_ - idle_since_ns_ >= patience_->budget_ns(now_ns_) ? Next::sleep : Next::yield;
  }
  void yielded(std::int64_t now_ns) noexcept {
    if (patience_->yielded(now_ns - now_ns_, now_ns)) polls_left_ = 1;
    now_ns_ = now_ns;
  }
  /// Called after a sleep. `found`: an event ended it; else its time was up.
  void slept(std::int64_t now_ns, bool found) noexcept {
    patience_->waited(found && idle_since_ns_ != 0 ? now_ns - idle_since_ns_ : INT64_MAX);
    now_ns_ = now_ns;
    idle_since_ns_ = 0;
    polls_left_ = patience_->polls_per_look(now_ns);
  }

 private:
  Patience* patience_;
  std::int64_t now_ns_;
  std::int64_t idle_since_ns_ = 0;  ///< first read of the clock that found nothing; 0: none since the last event
  unsigned polls_left_;
  bool found_since_look_ = false;
};

}  // namespace tandem::comm::internal
