// tandem/runtime/worker/hold.hpp: lets a worker wait for an urgent task that will be ready soon, instead of beginning a
// long one.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "tandem/clock/clock.hpp"
#include "tandem/runtime/exec/executor.hpp"

namespace tandem::runtime {

/// The hold of one worker. While an urgent task is expected (`ExpectedTasks`) and no worker is idle, a worker that
/// would begin a long and less urgent task puts it back and rests, if the policy says so (`Policy::waits`). Meanwhile
/// it takes only tasks that are more urgent than the one it put back; others see it as idle. The hold ends with such a
/// task, or a quarter of the announced time after the urgent one was due.
///
/// Threads: the worker's thread.
class Hold {
 public:
  Hold(unsigned worker, const WorkerSpec& spec, Executor& executor, const clock::Clock& clock)
      : worker_(worker), spec_(spec), executor_(executor), clock_(clock) {}

  bool is_on() const noexcept { return until_ns_ != 0; }
  std::int64_t until_ns() const noexcept { return until_ns_; }

  /// Whether to hold instead of running `task`, whose expected duration is `expected_ns(task)`, an optional. True: the
  /// hold is on.
  template <class ExpectedNs>
  bool begin_instead_of(const Task& task, ExpectedNs expected_ns) {
    if (!executor_.messages().expected().any()) [[likely]] return false;
    return may_hold(task) && begin(task, expected_ns(task));
  }
  void end() {
    if (std::exchange(until_ns_, 0) != 0) executor_.messages().expected().unclaim();
  }
  /// The next task to run, or null.
  Task* next() {
    if (!is_on()) [[likely]] return executor_.queues().pop(worker_);
    return next_urgent();
  }
  /// Whether there is nothing to do; called after `ReadyQueues::announce_idle`.
  bool finds_nothing() const noexcept {
    ReadyQueues& queues = executor_.queues();
    return is_on() ? queues.looks_empty_above(worker_, above_) : queues.looks_empty(worker_);
  }

 private:
  bool may_hold(const Task& task) const;
  bool begin(const Task& task, std::optional<std::int64_t> task_ns);
  Task* next_urgent();

  const unsigned worker_;
  const WorkerSpec& spec_;
  Executor& executor_;
  const clock::Clock& clock_;
  std::int64_t until_ns_ = 0;    ///< 0: off
  std::int32_t above_ = 0;       ///< priority of the task that was put back
  std::uint64_t expected_ = 0;   ///< number of the urgent task in `ExpectedTasks`
};

}  // namespace tandem::runtime
