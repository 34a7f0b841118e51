// tandem/runtime/wait/caller_loop.cpp: the loop of a waiting caller.
#include "tandem/runtime/wait/caller_loop.hpp"

#include "tandem/base/exceptions.hpp"
#include "tandem/runtime/exec/log_lines.hpp"
#include "tandem/runtime/wait/explain_stuck.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem::runtime {

void CallerLoop::run_until(bool (*done)(void*), void* context) {
  if (done(context)) return;
  submission_.trace().emit<trace::Type::wait_began>();
  struct Waiting {
    CallerLoop& loop;
    SubmittingThread::RunsKernels runs_kernels{loop.submission_.thread()};
    ~Waiting() {
      loop.workers_.leave_caller(loop.driver_.now_ns());
      loop.submission_.trace().emit<trace::Type::wait_ended>();
    }
  } waiting{*this};

  std::uint64_t seen = executor_.finished();
  bool reported = false;
  for (;;) {
    const std::int64_t deadline_ns = watchdog_.after_ns > 0 ? driver_.now_ns() + watchdog_.after_ns : base::kNever;
    const base::RunEnd end = driver_.run_until(done, context, deadline_ns);
    if (end == base::RunEnd::done) return;
    if (end == base::RunEnd::stuck) throw StuckError(explain_stuck());
    const std::uint64_t finished = executor_.finished();
    if (finished != seen) {
      seen = finished;
      reported = false;
      continue;
    }
    if (reported) continue;
    reported = true;
    const std::string why = explain_stuck();
    log_.error("no task has ended for {:.1f} s", static_cast<double>(watchdog_.after_ns) * 1e-9);
    log_lines(log_, "", why);
    if (watchdog_.throws) throw StuckError(why);
  }
}

std::string CallerLoop::explain_stuck() {
  std::string why = runtime::explain_stuck(submission_.pool(), submission_.submitted() - executor_.finished(), workers_.running());
  if (explain_more_) why += explain_more_();
  return why;
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
