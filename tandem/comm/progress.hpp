// tandem/comm/progress.hpp: which threads step the engine, and how they sleep: the progress thread, and callers that
// wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "tandem/base/attendance.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/parking.hpp"
#include "tandem/base/spin_lock.hpp"
#include "tandem/base/thread.hpp"
#include "tandem/comm/callback_failures.hpp"
#include "tandem/comm/poll_set_ownership.hpp"
#include "tandem/comm/engine/engine.hpp"
#include "tandem/comm/patience.hpp"
#include "tandem/comm/short_slice.hpp"
#include "tandem/trace/stream.hpp"

namespace tandem::comm::internal {

/// Steps one engine from several threads.
///
/// Protocol. `lock` guards the engine; a thread steps the engine only while it holds the lock. Callbacks run without
/// the lock: `dispatch_events` takes events out under the lock and calls them while `dispatching_` is set, so that one
/// thread at a time calls callbacks. A thread that finds the flag set leaves its events to the other thread, which
/// looks again after clearing it. What a callback throws is kept (`CallbackFailures`), and the other callbacks run.
///
/// Sleeping. There is one epoll set, with the transports' descriptors and an eventfd. Two threads may sleep at it: the
/// owner of the poll set (`PollSetOwnership`), which is one of those that wait, and the progress thread. A thread that
/// goes to sleep sets its flag (`owner_sleeps_`, `thread_sleeps_`), then, under the lock, arms all transports and looks
/// a last time for work. A thread that brings work (under the lock) looks at these flags afterwards and writes the
/// eventfd. Either the sleeper's look comes later and finds the work, or the other thread sees the flag (both are
/// sequentially consistent). A thread whose step made something happen looks at `owner_sleeps_` afterwards as well, and
/// the sleeper checks its condition after it has released the lock. A sleeper that no event wakes returns unused memory
/// now and then.
///
/// The set is edge-triggered (EPOLLET), and so wakes one sleeper per event: on Linux the last one that called
/// epoll_wait, which is the owner. When the progress thread wakes and finds that an owner sleeps, it signals again and
/// parks. A sleeper may leave part of what an event announced; so the next thread that arms the transports asks which
/// are readable (`events_may_be_left_`).
///
/// A thread that steps while the transports are armed for a sleeper (a caller of `Endpoint::progress`, or one that
/// polls briefly) may read what would have woken the sleeper, and leave the rest of it. So it arms the transports again
/// after the step, and wakes the sleeper if there is work, or if the sleeper would wake too late (`arm_again`). A
/// thread that posts while they are armed need not: transports make what waits there wake the sleeper
/// (`Transport::arm`).
///
/// Idle workers. An idle worker (`base::Attendance`) polls as a caller does. Meanwhile the progress thread sleeps
/// without arming the transports, so that peers do not signal. When the worker leaves, it arms them if the progress
/// thread sleeps: the next message wakes the progress thread, and no signal was needed before. So a worker may
/// alternate between short tasks and messages at little cost, and behind a long task progress goes on. While the
/// progress thread sleeps, one of these holds: transports are armed; an idle worker attends and is awake; a caller
/// waits and is awake. The thread that ends the last of these looks whether the progress thread sleeps (`hand_over`).
///
/// Sharing. A caller that waits polls until its first read of the clock, if no owner sleeps, and only then counts in
/// `waiters_`; until then the progress thread sees by `inline_steps_` that another thread makes progress. While a
/// caller waits, the progress thread yields the poll set to it and parks elsewhere, for periods that double up to
/// `kLongestRestNs`, so that it does not disturb a caller that alternates short waits and work. When even that passes
/// within one wait, it parks until the last caller leaves and wakes it.
class Progress final : public base::IdleWork {
 public:
  Progress(Engine& engine, const EndpointOptions& options, std::function<std::int64_t()> now_ns, base::EventLoop* loop);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Makes the epoll set and starts the thread. Errors: no descriptors left.
  base::Result<void> start();
  void stop();

  base::SpinLock& lock() noexcept { return lock_; }
  bool has_thread() const noexcept { return with_thread_ && loop_ == nullptr; }
  /// The stream of the progress thread's states; that thread alone writes it.
  trace::Stream& trace() noexcept { return trace_; }
  /// After a post, under the lock: wakes the threads that the post needs, and releases the lock.
  [[gnu::always_inline]] void posted_and_unlock() {
    // The thread that makes progress calls callbacks; a post never does.
    if (loop_ != nullptr) [[unlikely]] {
      lock_.unlock();
      return kick();
    }
    // Armed transports wake sleeping peers themselves.
    if (engine_.wakeups_are_due() && !armed_) engine_.wake_peers();
    const bool work = !engine_.nothing_left();
    lock_.unlock();
    if (work) [[unlikely]] wake_for_work();
  }
  /// Steps once and calls callbacks. True when something happened.
  bool once();
  /// `once`, and throws what a callback threw.
  bool poll() {
    const bool happened = once();
    failures_.rethrow();
    return happened;
  }
  /// Steps and sleeps until `done()`, and returns what it last said. False: the deadline came first, or the event loop
  /// found that it will never be.
  template <class Done>
  bool until(Done done, std::int64_t deadline_ns = base::kNever);
  /// `until` without a deadline. Throws at once what a callback threw: `done` may wait for what that callback did not
  /// do. Of several threads that wait, one throws it, and what the others saw of it is true no more.
  template <class Done>
  void await(Done done) {
    bool is_done = false;
    while (until([&] { return (is_done = done()) || failures_.any(); })) {
      failures_.rethrow();  // no effect if another waiting thread has thrown it
      if (is_done) return;
    }
    failures_.rethrow();
  }
  /// Announces an event within that time: see `Patience::expect`. Any thread.
  void expect(std::int64_t within_ns) { patience_.expect(now_ns_() + within_ns); }
  /// Wakes the sleeping threads. Any thread; from signal-like contexts too.
  void kick() noexcept;

  // base::IdleWork; not with an event loop
  void enter() override;
  Found look() override;
  void sleep(bool (*done)(void*), void* context, std::int64_t until_ns) override;
  void leave() override;
  void wake() noexcept override;
  void tend() override;

 private:
  struct Seat final : base::Steppable {
    explicit Seat(Progress& owner) : progress(owner) {}
    Progress& progress;
    std::int64_t step(std::int64_t now_ns) override;
  };
  static constexpr std::int64_t kShortestRestNs = 100'000;
  static constexpr std::int64_t kLongestRestNs = 2'000'000;
  /// How long the progress thread stays away while a caller waits; the last caller to leave wakes it.
  static constexpr std::int64_t kLongestAbsenceNs = 1'000'000'000;
  /// A burst that comes again sooner finds its memory unchanged.
  static constexpr std::int64_t kRestBeforeTrimNs = 20'000'000;
  static constexpr std::int64_t kLongestTrimNs = 600'000'000'000;
  static constexpr std::int64_t kBackOffNs = 50'000;  ///< between polls of transports that cannot wake a sleeper
  static constexpr std::int64_t kQuietBackOffNs = 20 * kBackOffNs;  ///< while nothing is under way here

  void run();
  /// Records the state of the progress thread from the current instant on, when its states are traced.
  void enter_state(trace::ProgressState state) {
    if (std::exchange(state_, state) != state)
      trace_.append<trace::Type::progress_state>(static_cast<std::uint8_t>(state));
  }
  void enter_sleep() {
    if (trace_.begin_instant<trace::Type::progress_state>()) [[unlikely]] enter_state(trace::ProgressState::sleeping);
  }
  bool wait_for(bool (*done)(void*), void* context, std::int64_t deadline_ns);
  template <class Done>
  bool poll_briefly(Done& done);
  bool once(std::int64_t now_ns);
  bool look_once(std::int64_t now_ns, bool counted);
  void leave_to_thread();
  void trim() noexcept;
  bool rest(std::int64_t wait_ns);
  bool await_event(std::int64_t wait_ns);
  void offer_core(Polling& polling);
  bool sleep_as_owner(Polling& polling, std::int64_t until_ns, bool (*done)(void*), void* context);
  bool sleep_at_poll_set(std::int64_t until_ns, bool (*done)(void*), void* context);
  void sleep_as_thread(Polling& polling);
  /// What a thread finds, under the lock, before it sleeps.
  struct LastLook {
    bool work = false;
    bool all_ring = true;
    std::int64_t due_ns = base::kNever;
  };
  LastLook arm();
  void disarm();
  [[gnu::noinline]] void arm_again();
  bool hand_over();
  bool something_ready();
  std::int64_t longest_sleep_ns(const LastLook& look, std::int64_t until_ns);
  void signal() noexcept;
  void wake_thread() noexcept;
  bool step_and_dispatch(std::int64_t now_ns);
  void dispatch_events();
  static void dispatch(Event& event);
  void note_failure() noexcept;
  void wake_others() {
    if (owner_sleeps_.load() || poll_set_.has_parked()) [[unlikely]] wake_sleepers();
  }
  void wake_sleepers();
  [[gnu::noinline]] void wake_for_work();

  Engine& engine_;
  Patience patience_;
  int core_;
  bool with_thread_;
  std::function<std::int64_t()> now_ns_;
  base::EventLoop* loop_;
  base::Waker* waker_ = nullptr;
  Seat seat_{*this};

  base::SpinLock lock_;
  std::atomic<bool> dispatching_{false};
  CallbackFailures failures_;

  base::FileDescriptor epoll_;
  base::FileDescriptor wake_event_;
  PollSetOwnership poll_set_;
  std::atomic<bool> owner_sleeps_{false};  ///< the owner of the poll set sleeps, or is about to
  std::atomic<bool> thread_sleeps_{false};   ///< the progress thread sleeps at the poll set, or is about to
  std::atomic<bool> attended_{false};  ///< written under the lock
  bool armed_ = false;                 ///< whether all transports are; guarded by the lock
  std::int64_t armed_until_ns_ = base::kNever;  ///< when the sleeper wakes by itself; guarded by the lock
  std::atomic<bool> events_may_be_left_{false};    ///< a sleeper took an event and may not have read all of it
  std::optional<Polling> attendant_polling_;  ///< the attendant's
  ShortSlice slice_;                  ///< the attendant's, after it has slept
  std::atomic<int> waiters_{0};
  /// Steps of callers, counted roughly: the progress thread sees that another thread makes progress.
  std::atomic<std::uint64_t> inline_steps_{0};
  base::Parker parker_;                         ///< the progress thread's
  enum class Rests : std::uint8_t { no, shortly, until_they_leave };
  std::atomic<Rests> rests_{Rests::no};  ///< of the progress thread; checked against `waiters_` and `attended_`
  std::atomic<bool> stopping_{false};
  trace::Stream trace_;
  std::optional<trace::ProgressState> state_;  ///< of the progress thread; empty: it is not traced
  base::Thread thread_;
};

/// A wait for an event within a microsecond, which does not count as a waiter. Other threads see the progress by
/// `inline_steps_`.
template <class Done>
bool Progress::poll_briefly(Done& done) {
  if (loop_ != nullptr || owner_sleeps_.load()) return false;
  const std::int64_t now = now_ns_();
  if (patience_.budget_ns(now) == 0) return false;
  for (unsigned polls = patience_.polls_per_look(now); polls > 0; --polls) {
    if (once(now)) wake_others();
    if (done()) return true;
  }
  return false;
}

/// `counted`: the progress thread must see that a caller makes progress.
inline bool Progress::look_once(std::int64_t now_ns, bool counted) {
  bool happened = false;
  if (lock_.try_lock()) {
    // Not a read-modify-write: callers hold the lock, and the thread only looks for changes.
    if (counted) inline_steps_.store(inline_steps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    happened = engine_.step(now_ns) <= now_ns;
    const bool events = !engine_.events().empty();
    const bool armed = armed_;
    lock_.unlock();
    if (events) [[unlikely]] dispatch_events();
    if (armed) [[unlikely]] arm_again();
  }
  return happened;
}

template <class Done>
bool Progress::until(Done done, std::int64_t deadline_ns) {
  if (done() || poll_briefly(done)) return true;
  return wait_for([](void* context) { return (*static_cast<Done*>(context))(); }, &done, deadline_ns);
}

}  // namespace tandem::comm::internal
