// tandem/comm/progress.hpp: who steps the engine, and how they sleep: the progress thread, and callers that wait.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

#include "tandem/base/event_loop.hpp"
#include "tandem/base/parking.hpp"
#include "tandem/base/spin_lock.hpp"
#include "tandem/comm/bed.hpp"
#include "tandem/comm/engine/engine.hpp"
#include "tandem/comm/patience.hpp"

namespace tandem::comm::internal {

/// Steps one engine from several threads.
///
/// Protocol. `lock` guards the engine; whoever holds it may step. Users are told without it: `tell_events` takes events out under
/// the lock and calls them while it holds the *baton*, so that calls come one at a time; who finds the baton taken leaves its
/// events to the holder, who looks again after putting it down.
///
/// Sleeping. There is one *bed* (`Bed`): an epoll set with the transports' descriptors and an eventfd. Who goes to bed sets
/// `in_bed_`, then, under the lock, arms all transports and looks a last time for work. Who brings work (under the lock) looks
/// at `in_bed_` afterwards and writes the eventfd. Either the sleeper's look comes later and finds the work, or the bringer
/// sees the bed occupied (both sequentially consistent). Who steps and makes something happen looks at `in_bed_` afterwards as
/// well, and the sleeper looks at what it waits for after it has let the lock go. A sleeper that nobody wakes gives back, now
/// and then, what bursts have left.
///
/// Sharing. A caller that waits polls until its first look at the clock first, if nobody is in bed, and only then counts among
/// `waiters_`; until then the progress thread sees by `inline_steps_` that somebody makes progress. While a caller waits, the
/// progress thread leaves the bed to it and rests elsewhere, for periods that double up to `kLongestRestNs`, so that a caller
/// that alternates short waits and work is not disturbed. When even that passes within one wait, it rests until the last caller
/// leaves, who wakes it.
class Progress {
 public:
  Progress(Engine& engine, const EndpointOptions& options, std::function<std::int64_t()> now_ns, base::EventLoop* loop);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Opens the bed and starts the thread. Errors: no descriptors left.
  base::Result<void> start();
  void stop();

  base::SpinLock& lock() noexcept { return lock_; }
  /// After something was posted, under the lock: sees to it that it goes on, and lets the lock go.
  [[gnu::always_inline]] void posted_and_unlock() {
    // Events are told by whoever makes progress, never inside a post.
    if (loop_ != nullptr) [[unlikely]] {
      lock_.unlock();
      return kick();
    }
    // In bed all transports are armed, and ring by themselves.
    if (engine_.bells_are_due() && !in_bed_.load()) engine_.ring_bells();
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
  bool wait_for(bool (*done)(void*), void* context, std::int64_t deadline_ns);
  template <class Done>
  bool poll_briefly(Done& done);
  bool once(std::int64_t now_ns);
  void trim() noexcept;
  bool rest(std::int64_t wait_ns);
  bool await_bell(std::int64_t wait_ns);
  void offer_core(Polling& polling);
  bool sleep_in_bed(Polling& polling, std::int64_t until_ns, bool (*done)(void*), void* context);
  bool sleep(std::int64_t until_ns, bool (*done)(void*), void* context);
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

  int epoll_ = -1;
  int bell_ = -1;
  Bed bed_;
  std::atomic<bool> in_bed_{false};  ///< who has it sleeps, or is about to
  std::atomic<int> waiters_{0};
  /// By callers, counted roughly: the thread sees that somebody else makes progress.
  std::atomic<std::uint64_t> inline_steps_{0};
  base::Parker parker_;                         ///< the thread's
  std::atomic<bool> rests_long_{false};  ///< the thread, until `parker_` is unparked; checked against `waiters_` on both sides
  std::atomic<bool> stopping_{false};
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

template <class Done>
bool Progress::until(Done done, std::int64_t deadline_ns) {
  if (done() || poll_briefly(done)) return true;
  return wait_for([](void* context) { return (*static_cast<Done*>(context))(); }, &done, deadline_ns);
}

}  // namespace tandem::comm::internal
