// tandem/runtime/wait/caller_loop.hpp: the work of the submitting thread while it waits, and its watchdog.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tandem/base/driver.hpp"
#include "tandem/base/fork.hpp"
#include "tandem/base/log.hpp"
#include "tandem/runtime/exec/executor.hpp"
#include "tandem/runtime/submit/submission.hpp"
#include "tandem/runtime/wait/kernel_watch.hpp"

namespace tandem::runtime {

class WorkerTeam;

struct WatchdogOptions {
  std::int64_t after_ns = 0;  ///< time without the end of a task; 0: no watchdog
  bool throws = false;        ///< throw StuckError instead of waiting on
};

/// Functions that a layer above runs in a wait in which no task ends.
struct WaitWatcher {
  std::int64_t every_ns = 0;              ///< time without the end of a task; 0: never
  std::function<void()> standstill = {};  ///< called after that time, and again after the same time
  std::function<std::string()> explain = {};  ///< lines for the watchdog: what this wait waits for outside the runtime
};

/// The loop of the submitting thread inside a wait. Its worker (if the caller works) runs tasks meanwhile, and
/// submissions by kernels are refused. When no task ends for a while the log says once why. In the event loop, where
/// nothing can come from outside, a standstill throws StuckError at once.
///
/// Threads: the submitting thread. A thread that makes a condition true wakes it by `Executor::caller().wake()`.
class CallerLoop final : public EndWaiter {
 public:
  CallerLoop(base::Driver& driver, Submission& submission, Executor& executor, WorkerTeam& workers, base::Log& log,
             const WatchdogOptions& watchdog)
      : driver_(driver), submission_(submission), executor_(executor), workers_(workers), log_(log), watchdog_(watchdog) {}

  /// Works, or sleeps, until `done(context)`. Throws StuckError; UsageError in a child by fork(), which has no workers.
  void run_until(bool (*done)(void*), void* context);
  void wait_until_ended(std::uint64_t count) override;
  /// As `wait_until_ended`, but returns also when `value` is no longer `seen`; the thread that changes it wakes the
  /// caller.
  void wait_until_ended_unless(std::uint64_t count, const std::atomic<std::uint64_t>& value, std::uint64_t seen);
  bool wait_while_tasks_end(bool (*done)(void*), void* context) override;
  /// Text for the log: each waiting task, and what it waits for. Called while no thread works on tasks.
  std::string explain_stuck();
  /// Whether this object is a copy made by fork() in a child.
  bool is_in_child() const noexcept { return !made_here_.is_of_this_process(); }
  base::Log& log() noexcept { return log_; }
  void watch(WaitWatcher watcher) { watcher_ = std::move(watcher); }
  /// Lets the first wait start a `KernelWatch`. For a driver whose threads step others while the caller is in a kernel.
  void watch_kernels() noexcept { watches_kernels_ = watchdog_.after_ns > 0; }

 private:
  struct Waiting;

  void begin_watch();

  const base::ProcessMark made_here_;
  base::Driver& driver_;
  Submission& submission_;
  Executor& executor_;
  WorkerTeam& workers_;
  base::Log& log_;
  const WatchdogOptions watchdog_;
  WaitWatcher watcher_;
  bool watches_kernels_ = false;
  std::unique_ptr<KernelWatch> kernel_watch_;
};

}  // namespace tandem::runtime
