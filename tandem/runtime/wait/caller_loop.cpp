// tandem/runtime/wait/caller_loop.cpp: the loop of a waiting caller.
#include "tandem/runtime/wait/caller_loop.hpp"

#include <algorithm>
#include <exception>

#include "tandem/base/exceptions.hpp"
#include "tandem/runtime/exec/log_lines.hpp"
#include "tandem/runtime/exec/recorded_order.hpp"
#include "tandem/runtime/wait/explain_stuck.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem::runtime {

namespace {
constexpr std::int64_t kLookNs = 1'000'000;  ///< interval at which a wait for ended tasks looks at what they have freed
constexpr std::int64_t kNothingEndsNs = 20'000'000;  ///< after this time it goes on, unless a kernel runs
}  // namespace

/// The submitting thread waits while this lives.
struct CallerLoop::Waiting {
  explicit Waiting(CallerLoop& caller_loop) : loop(caller_loop), runs_kernels(loop.submission_.thread()) {
    loop.submission_.trace().emit<trace::Type::wait_began>();
    if (loop.watches_kernels_ && loop.kernel_watch_ == nullptr) loop.begin_watch();
    if (loop.kernel_watch_ != nullptr) loop.kernel_watch_->begin_wait();
  }
  ~Waiting() {
    // After a wait that throws its worker may be asleep, and pushes wake none that has left: the next wait steps it.
    if (std::uncaught_exceptions() > exceptions) loop.executor_.caller().wake();
    if (loop.kernel_watch_ != nullptr) loop.kernel_watch_->end_wait();
    loop.workers_.leave_caller(loop.driver_.now_ns());
    loop.submission_.trace().emit<trace::Type::wait_ended>();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  CallerLoop& loop;
  SubmittingThread::RunsKernels runs_kernels;
  const int exceptions = std::uncaught_exceptions();
};

/// Starts the watch if possible: tasks run without it, so a wait does not fail without its thread.
void CallerLoop::begin_watch() {
  auto watch = std::make_unique<KernelWatch>(executor_, workers_, log_, watchdog_.after_ns);
  try {
    driver_.add(*watch, {.name = "tandem-watchdog"}).wake();
    kernel_watch_ = std::move(watch);
  } catch (const StartError& error) {
    watches_kernels_ = false;
    log_.warn("the watchdog does not watch kernels of the waiting thread: {}", error.what());
  }
}

void CallerLoop::run_until(bool (*done)(void*), void* context) {
  if (is_in_child()) base::refuse_in_child("runtime");
  if (done(context)) return;
  if (workers_.are_paused())
    throw UsageError("what is waited for has not ended, and the workers are paused: call resume() first");
  const Waiting waiting(*this);

  // Each is due when no task has ended for its time; `kNever`: it is off.
  const auto due_after = [](std::int64_t now_ns, std::int64_t after_ns) {
    return after_ns > 0 ? now_ns + after_ns : base::kNever;
  };
  std::int64_t now_ns = watchdog_.after_ns > 0 || watcher_.every_ns > 0 ? driver_.now_ns() : 0;
  std::int64_t report_ns = due_after(now_ns, watchdog_.after_ns);
  std::int64_t look_ns = due_after(now_ns, watcher_.every_ns);
  std::uint64_t seen = executor_.finished();
  bool reported = false;
  for (;;) {
    const base::RunEnd end = driver_.run_until(done, context, std::min(report_ns, look_ns));
    if (end == base::RunEnd::done) return;
    if (end == base::RunEnd::stuck) throw StuckError(explain_stuck());
    now_ns = driver_.now_ns();
    const std::uint64_t finished = executor_.finished();
    const bool moves = finished != seen;
    if (now_ns >= look_ns) {
      if (!moves) watcher_.standstill();
      look_ns = due_after(now_ns, watcher_.every_ns);
    }
    if (moves) {
      seen = finished;
      reported = false;
      report_ns = due_after(now_ns, watchdog_.after_ns);
      continue;
    }
    if (now_ns < report_ns) continue;
    report_ns = due_after(now_ns, watchdog_.after_ns);
    if (std::exchange(reported, true)) continue;
    const std::string why = explain_stuck();
    log_.error("no task has ended for {:.1f} s", static_cast<double>(watchdog_.after_ns) * 1e-9);
    log_lines(log_, "", why);
    if (watchdog_.throws) throw StuckError(why);
  }
}

std::string CallerLoop::explain_stuck() {
  Room& room = executor_.memory().room();
  std::string text =
      runtime::explain_stuck(submission_.pool(), submission_.submitted() - executor_.finished(), workers_.running(),
                             [&room](Task& task) { return room.why_waits(task); });
  if (executor_.order() != nullptr) text += executor_.order()->why_waits();
  if (watcher_.explain != nullptr) text += watcher_.explain();
  return text;
}

void CallerLoop::wait_until_ended(std::uint64_t count) {
  static const std::atomic<std::uint64_t> never{0};
  wait_until_ended_unless(count, never, 0);
}

void CallerLoop::wait_until_ended_unless(std::uint64_t count, const std::atomic<std::uint64_t>& value,
                                         std::uint64_t seen) {
  struct Ended {
    Executor& executor;
    const std::uint64_t count;
    const std::atomic<std::uint64_t>& value;
    const std::uint64_t seen;
    ~Ended() { executor.wake_at(UINT64_MAX); }
  } ended{executor_, count, value, seen};
  executor_.wake_at(count);
  run_until(
      [](void* context) {
        const auto& wanted = *static_cast<const Ended*>(context);
        return wanted.executor.finished() >= wanted.count ||
               wanted.value.load(std::memory_order_acquire) != wanted.seen;
      },
      &ended);
}

/// The wait may need later submissions, a release by the application, or a message of a rank that waits as well. To
/// avoid a deadlock it returns when no task ends and no kernel runs.
bool CallerLoop::wait_while_tasks_end(bool (*done)(void*), void* context) {
  if (is_in_child()) base::refuse_in_child("runtime");
  if (done(context)) return true;
  if (workers_.are_paused()) return false;
  const Waiting waiting(*this);
  struct Woken {
    Executor& executor;
    // No other thread does, and its worker may have gone to sleep: the next wait steps it.
    ~Woken() { executor.caller().wake(); }
  } woken{executor_};
  std::uint64_t seen = executor_.finished();
  std::int64_t now_ns = driver_.now_ns(), ended_ns = now_ns;
  for (;;) {
    const base::RunEnd end = driver_.run_until(done, context, now_ns + kLookNs);
    if (end == base::RunEnd::done) return true;
    if (end == base::RunEnd::stuck) return false;
    now_ns = driver_.now_ns();
    if (const std::uint64_t finished = executor_.finished(); finished != seen || !workers_.running().empty()) {
      seen = finished;
      ended_ns = now_ns;
    } else if (now_ns - ended_ns >= kNothingEndsNs) {
      return false;
    }
  }
}

}  // namespace tandem::runtime
