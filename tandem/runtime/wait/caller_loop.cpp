// tandem/runtime/wait/caller_loop.cpp: the loop of a waiting caller.
#include "tandem/runtime/wait/caller_loop.hpp"

#include <algorithm>

#include "tandem/base/exceptions.hpp"
#include "tandem/runtime/exec/log_lines.hpp"
#include "tandem/runtime/wait/explain_stuck.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem::runtime {

void CallerLoop::run_until(bool (*done)(void*), void* context) {
  if (done(context)) return;
  if (workers_.are_paused()) throw UsageError("what is waited for has not ended, and the workers are paused: call resume() first");
  submission_.trace().emit<trace::Type::wait_began>();
  if (watches_kernels_ && kernel_watch_ == nullptr) {
    kernel_watch_ = std::make_unique<KernelWatch>(executor_, workers_, log_, watchdog_.after_ns);
    driver_.add(*kernel_watch_, {.name = "tandem-watchdog"}).wake();
  }
  if (kernel_watch_ != nullptr) kernel_watch_->begin_wait();
  struct Waiting {
    CallerLoop& loop;
    SubmittingThread::RunsKernels runs_kernels{loop.submission_.thread()};
    ~Waiting() {
      if (loop.kernel_watch_ != nullptr) loop.kernel_watch_->end_wait();
      loop.workers_.leave_caller(loop.driver_.now_ns());
      loop.submission_.trace().emit<trace::Type::wait_ended>();
    }
  } waiting{*this};

  // Each is due when no task has ended for so long; `kNever`: it is off.
  const auto due_after = [](std::int64_t now_ns, std::int64_t after_ns) { return after_ns > 0 ? now_ns + after_ns : base::kNever; };
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
  std::string text = runtime::explain_stuck(submission_.pool(), submission_.submitted() - executor_.finished(), workers_.running());
  if (watcher_.explain != nullptr) text += watcher_.explain();
  return text;
}

void CallerLoop::wait_until_ended(std::uint64_t count) {
  struct Ended {
    Executor& executor;
    const std::uint64_t count;
    ~Ended() { executor.wake_at(UINT64_MAX); }
  } ended{executor_, count};
  executor_.wake_at(count);
  run_until(
      [](void* context) {
        const auto& wanted = *static_cast<const Ended*>(context);
        return wanted.executor.finished() >= wanted.count;
      },
      &ended);
}

}  // namespace tandem::runtime
