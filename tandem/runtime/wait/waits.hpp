// tandem/runtime/wait/waits.hpp: waits for the whole flow, and how it ended: failures, cancellation.
#pragma once

#include <cstdint>
#include <optional>

#include "tandem/base/log.hpp"
#include "tandem/runtime/submit/data_registry.hpp"
#include "tandem/runtime/exec/executor.hpp"
#include "tandem/runtime/submit/submission.hpp"
#include "tandem/runtime/wait/caller_loop.hpp"
#include "tandem/runtime/wait/held_accesses.hpp"

namespace tandem::runtime {

/// Waits for everything that was submitted. Used by the submitting thread, except `cancel`.
class Waits {
 public:
  Waits(Submission& submission, CallerLoop& loop, Executor& executor, DataRegistry& data, const HeldAccesses& held,
        base::Log& log)
      : submission_(submission), loop_(loop), executor_(executor), data_(data), held_(held), log_(log) {}

  /// Waits until all tasks have ended, ends a cancelled flow, and throws the earliest failure that no wait has thrown
  /// yet. While the application holds accesses, it throws StuckError once all tasks have ended that do not wait for
  /// them.
  void wait_all();
  /// The parts of `wait_all`, for flows of several ranks. `drain` waits until all tasks have ended; `take_failures`
  /// returns the failures, which then count as reported; `throw_failure` logs them and throws the earliest.
  void drain();
  FailureLog::Report take_failures() { return executor_.failures().take_report(submission_.last_id()); }
  [[noreturn]] void throw_failure(const FailureLog::Report& report);

  /// Cancels the rest of the flow: tasks behind one position do not run, and later submissions are ignored until the
  /// next `wait_all`. Any thread, kernels included. For one rank; `dist::Flow` agrees on the position for several.
  void cancel() { executor_.end_here(); }
  /// Position behind which the flow that the last `wait_all` ended was cancelled; no value: it was not.
  std::optional<TaskId> cancelled_at() const noexcept { return cancelled_at_; }

 private:
  void end_flow();
  void wait_for_others(std::uint64_t submitted);

  Submission& submission_;
  CallerLoop& loop_;
  Executor& executor_;
  DataRegistry& data_;
  const HeldAccesses& held_;
  base::Log& log_;
  std::optional<TaskId> cancelled_at_;
};

}  // namespace tandem::runtime
