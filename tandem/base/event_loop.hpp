// tandem/base/event_loop.hpp: the driver of tests and simulations: one thread steps all, in an order drawn from a seed.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/base/date_heap.hpp"
#include "tandem/base/driver.hpp"
#include "tandem/base/spin_lock.hpp"

namespace tandem::base {

/// Loops of several processes that share one time. Called by the thread of the loop.
class SharedTime {
 public:
  virtual ~SharedTime() = default;
  /// Waits until all have done what comes before `next_ns`, the date at which this loop would go on (kNever: it has
  /// nothing to do), or until something arrives for this loop, which is added to it by `at`. Returns a date: nothing
  /// further arrives before it. False in `may_go_on`: no loop has anything to do.
  struct Grant {
    std::int64_t until_ns = 0;  ///< the loop may do what comes before this date
    bool may_go_on = true;
  };
  virtual Grant wait(std::int64_t next_ns) = 0;
};

/// Steps all steppables on the calling thread, in an order drawn from a seed, in manual time: when all are idle, time
/// jumps to the earliest date that a steppable asked for. Equal seeds and programs give exactly equal orders.
///
/// A step looks only at slots that are due. A bit per slot says so (157 words for 10,000 slots); dates in the future
/// are sorted.
///
/// Not thread-safe, except for wakers: another thread may wake a steppable, and the run is still correct but not
/// deterministic.
class EventLoop final : public Driver {
 public:
  explicit EventLoop(std::uint64_t seed) : state_(seed * 2 + 1) {}

  Waker& add(Steppable& steppable, const Placement& placement) override;
  Waker& add_caller(Steppable& steppable) override;
  void stop() override { stopped_ = true; }
  /// Stops stepping it, so that it may be destroyed. Its waker remains and does nothing. Not from inside its own step.
  void remove(Steppable& steppable);
  RunEnd run_until(bool (*done)(void*), void* context, std::int64_t deadline_ns) override;
  std::int64_t now_ns() override { return now_ns_; }

  /// Runs `action` on the loop at `when_ns` (not before now). For fakes of networks and devices.
  void at(std::int64_t when_ns, std::function<void()> action);

  /// One step of one steppable other than the caller's, or one due action; false when there is nothing to do at this
  /// date.
  bool step_one();

  /// From now on time goes on only as `others` grants it. They outlive the loop.
  void share_time(SharedTime& others) { others_ = &others; }

  /// Makes a number of steps drawn from [0, `most`]: what may happen between two submissions.
  void step_some(unsigned most);

  std::uint64_t random() noexcept;
  /// A number below `count`, which is not 0: drawn, or chosen by the function of `choose_with`.
  std::size_t choose(std::size_t count) {
    return chooser_ ? chooser_(count) : static_cast<std::size_t>(random() % count);
  }
  /// Makes `chooser` choose the next step from now on, so that a test can try all orders. Empty: steps are drawn.
  void choose_with(std::function<std::size_t(std::size_t count)> chooser) { chooser_ = std::move(chooser); }

 private:
  /// Protocol. `wake` puts a slot among the loop's `woken_`, unless it is there (`listed`); the loop takes them all
  /// before it checks which are due. Both under `woken_lock_`, so that a step sees what was done before the wake-ups
  /// that it answers.
  struct Slot final : Waker {
    Slot(EventLoop& owner, std::size_t at, Steppable& what) : loop(owner), index(at), steppable(&what) {}
    void wake() noexcept override;

    EventLoop& loop;
    const std::size_t index;
    Steppable* steppable;
    bool woken = true;
    std::int64_t next_ns = kNever;
    bool listed = false;  ///< guarded by `woken_lock_`
  };
  struct Action {
    std::uint64_t order = 0;  ///< of `at`
    std::function<void()> run;
  };

  bool due(const Slot& slot) const noexcept { return (due_[slot.index / 64] >> slot.index % 64 & 1) != 0; }
  void note_due(const Slot& slot);
  void set_next(Slot& slot, std::int64_t next_ns);
  void run_action(std::size_t due);
  void take_woken();
  void set_now(std::int64_t now_ns);
  std::size_t due_slots(bool with_caller) const noexcept;
  Slot& due_slot(std::size_t number, bool with_caller);
  bool step_one(bool with_caller);
  std::int64_t earliest_ns(bool with_caller);
  bool advance(std::int64_t deadline_ns, bool with_caller);
  void step(Slot& slot);

  std::uint64_t state_;
  std::function<std::size_t(std::size_t)> chooser_;
  std::int64_t now_ns_ = 0;
  SharedTime* others_ = nullptr;
  std::int64_t granted_ns_ = 0;  ///< by `others_`: nothing arrives from them before this date
  std::uint64_t actions_added_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::unordered_multimap<const Steppable*, Slot*> by_steppable_;  ///< those that are stepped
  Slot* caller_ = nullptr;
  SpinLock woken_lock_;
  std::vector<Slot*> woken_;                              ///< guarded by `woken_lock_`; has room for all slots
  std::vector<std::uint64_t> due_;                       ///< a bit per slot: it was woken, or its date has come
  std::size_t due_count_ = 0;
  DateHeap dates_;                   ///< of slots, in the future
  std::vector<Action> actions_;      ///< by number
  std::vector<std::size_t> unused_;  ///< numbers of `actions_`
  DateHeap action_dates_;            ///< of actions in the future
  std::vector<std::size_t> due_actions_;  ///< numbers, in the order of `at`
  bool stopped_ = false;             ///< slots stay, so that wakers may still be called
};

}  // namespace tandem::base
