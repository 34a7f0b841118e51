// tandem/comm/progress.hpp: who steps the engine, and how they sleep: the progress thread, and callers that wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "tandem/base/attendance.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/base/file_descriptor.hpp"
#include "tandem/base/parking.hpp"
#include "tandem/base/spin_lock.hpp"
#include "tandem/comm/bed.hpp"
#include "tandem/comm/engine/engine.hpp"
#include "tandem/comm/patience.hpp"
#include "tandem/comm/short_slice.hpp"
#include "tandem/trace/stream.hpp"

namespace tandem::comm::internal {

/// Steps one engine from several threads.
///
/// Protocol. `lock` guards the engine; whoever holds it may step. Users are told without it: `tell_events` takes events out
/// under the lock and calls them while it holds the *baton*, so that calls come one at a time; who finds the baton taken leaves
/// its events to the holder, who looks again after putting it down.
///
/// Sleeping. There is one epoll set, with the transports' descriptors and an eventfd, and two places at it: the *bed* (`Bed`)
/// for one of those who wait, and *below* it that of the progress thread. Who goes to sleep says so (`in_bed_`, `below_`),
/// then, under the lock, arms all transports and looks a last time for work. Who brings work (under the lock) looks at these
/// afterwards and writes the eventfd. Either the sleeper's look comes later and finds the work, or the bringer sees the sleeper
/// (both sequentially consistent). Who steps and makes something happen looks at `in_bed_` afterwards as well, and the sleeper
/// looks at what it waits for after it has let the lock go. A sleeper that nobody wakes gives back, now and then, what bursts
/// have left.
///
/// The set tells of each event once (EPOLLET), and so wakes one sleeper for it: the last one that lay down, as Linux does it,
/// which is the one in bed. When the thread finds the bed occupied as it wakes, it rings again and keeps out of the way.
/// Whoever was woken may leave something that was told of where it is: so who arms the transports after that asks for what is
/// ready (`told_`).
///
/// Attending. An idle worker (`base::Attendance`) polls as a caller does, and the thread goes below while it does, without
/// arming the transports, so that peers ring for nobody. When the attendant leaves it arms them, if the thread is below: the
/// next message wakes the thread, and nothing was said to it before. So a worker may alternate between short tasks and messages
/// at little cost, and behind a long task progress goes on. While the thread is below one of these holds: transports are armed;
/// somebody attends and is awake; a caller waits and is awake. Whoever ends the last of these looks whether the thread is below
/// (`hand_over`).
///
/// Sharing. A caller that waits polls until its first look at the clock first, if nobody is in bed, and only then counts among
/// `waiters_`; until then the progress thread sees by `inline_steps_` that somebody makes progress. While a caller waits, the
/// progress thread leaves the bed to it and rests elsewhere, for periods that double up to `kLongestRestNs`, so that a caller
/// that alternates short waits and work is not disturbed. When even that passes within one wait, it rests until the last caller
/// leaves, who wakes it.
class Progress final : public base::IdleWork {
 public:
  Progress(Engine& engine, const EndpointOptions& options, std::function<std::int64_t()> now_ns, base::EventLoop* loop);
  ~Progress() override;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Opens the bed and starts the thread. Errors: no descriptors left.
  base::Result<void> start();
  void stop();

  base::SpinLock& lock() noexcept { return lock_; }
  bool has_thread() const noexcept { return with_thread_ && loop_ == nullptr; }
  /// Of the thread, which alone writes it: its states.
  trace::Stream& trace() noexcept { return trace_; }
  /// After something was posted, under the lock: sees to it that it goes on, and lets the lock go.
  [[gnu::always_inline]] void posted_and_unlock() {
    // Events are told by whoever makes progress, never inside a post.
    if (loop_ != nullptr) [[unlikely]] {
      lock_.unlock();
      return kick();
    }
    // Transports that are armed ring by themselves.
    if (engine_.bells_are_due() && !armed_) engine_.ring_bells();
    const bool work = !engine_.nothing_left();
    lock_.unlock();
    if (work) [[unlikely]] wake_for_work();
  }
  /// Steps once and tells. True when something happened.
  bool once();
  /// Steps and sleeps until `done()`. False: the deadline came first, or the event loop found that it will never be.
  template <class Done>
  bool until(Done done, std::int64_t deadline_ns = base::kNever);
  /// Something will come within that time: see `Patience::expect`. Any thread.
  void expect(std::int64_t within_ns) { patience_.expect(now_ns_() + within_ns); }
  /// Wakes whoever sleeps. Any thread; from signal-like contexts too.
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
  /// While somebody waits for long: the last one to leave wakes the thread.
  static constexpr std::int64_t kLongestAbsenceNs = 1'000'000'000;
  /// A burst that comes again sooner finds its memory where it was.
  static constexpr std::int64_t kRestBeforeTrimNs = 20'000'000;
  static constexpr std::int64_t kLongestTrimNs = 600'000'000'000;
  static constexpr std::int64_t kBackOffNs = 50'000;  ///< between polls of transports that cannot ring
  static constexpr std::int64_t kQuietBackOffNs = 20 * kBackOffNs;  ///< while nothing is under way here

  void run();
  /// Of the thread, where its states are told: in which it is from the instant on that was begun.
  void enter_state(trace::ProgressState state) {
    if (std::exchange(state_, state) != state) trace_.append<trace::Type::progress_state>(static_cast<std::uint8_t>(state));
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
  bool await_bell(std::int64_t wait_ns);
  void offer_core(Polling& polling);
  bool sleep_in_bed(Polling& polling, std::int64_t until_ns, bool (*done)(void*), void* context);
  bool lie_down(std::int64_t until_ns, bool (*done)(void*), void* context);
  void sleep_below(Polling& polling);
  /// Under the lock, before a sleep.
  struct LastLook {
    bool work = false;
    bool all_ring = true;
    std::int64_t due_ns = base::kNever;
  };
  LastLook arm();
  void disarm();
  bool hand_over();
  bool something_ready();
  std::int64_t longest_sleep_ns(const LastLook& look, std::int64_t until_ns);
  void ring() noexcept;
  void wake_thread() noexcept;
  bool step_and_tell(std::int64_t now_ns);
  void tell_events();
  static void tell(Event& event);
  void wake_others() {
    if (in_bed_.load() || bed_.somebody_rests()) [[unlikely]] wake_sleepers();
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
  std::atomic<bool> baton_{false};

  base::FileDescriptor epoll_;
  base::FileDescriptor bell_;
  Bed bed_;
  std::atomic<bool> in_bed_{false};  ///< who has it sleeps, or is about to
  std::atomic<bool> below_{false};   ///< the thread sleeps there, or is about to
  std::atomic<bool> attended_{false};  ///< written under the lock
  bool armed_ = false;                 ///< all transports are; guarded by the lock
  std::atomic<bool> told_{false};    ///< of an event, of which something may be left
  std::optional<Polling> attending_;  ///< the attendant's
  ShortSlice slice_;                  ///< the attendant's, when it has slept
  std::atomic<int> waiters_{0};
  /// By callers, counted roughly: the thread sees that somebody else makes progress.
  std::atomic<std::uint64_t> inline_steps_{0};
  base::Parker parker_;                         ///< the thread's
  enum class Rests : std::uint8_t { no, shortly, until_they_leave };
  std::atomic<Rests> rests_{Rests::no};  ///< the thread, at `parker_`; checked against `waiters_` and `attended_` on both sides
  std::atomic<bool> stopping_{false};
  trace::Stream trace_;
  std::optional<trace::ProgressState> state_;  ///< of the thread; nothing: it is not told
  std::thread thread_;
};

/// What comes within a microsecond is taken without a word to others: that somebody makes progress they see by the steps.
template <class Done>
bool Progress::poll_briefly(Done& done) {
  if (loop_ != nullptr || in_bed_.load()) return false;
  const std::int64_t now = now_ns_();
  if (patience_.budget_ns(now) == 0) return false;
  for (unsigned polls = patience_.polls_per_look(now); polls > 0; --polls) {
    if (once(now)) wake_others();
    if (done()) return true;
  }
  return false;
}

/// `counted`: the thread shall see that a caller makes progress.
inline bool Progress::look_once(std::int64_t now_ns, bool counted) {
  bool happened = false;
  if (lock_.try_lock()) {
    // Not a read-modify-write: callers hold the lock, and the thread only looks for changes.
    if (counted) inline_steps_.store(inline_steps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    happened = engine_.step(now_ns) <= now_ns;
    const bool events = !engine_.events().empty();
    lock_.unlock();
    if (events) [[unlikely]] tell_events();
  }
  return happened;
}

template <class Done>
bool Progress::until(Done done, std::int64_t deadline_ns) {
  if (done() || poll_briefly(done)) return true;
  return wait_for([](void* context) { return (*static_cast<Done*>(context))(); }, &done, deadline_ns);
}

}  // namespace tandem::comm::internal
