// tandem/runtime/worker/worker.hpp: runs tasks, one after the other, in steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tandem/base/attendance.hpp"
#include "tandem/base/driver.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/published.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/runtime/exec/executor.hpp"
#include "tandem/runtime/exec/kernel_call.hpp"
#include "tandem/runtime/worker/emulation.hpp"
#include "tandem/runtime/worker/statistics.hpp"

namespace tandem::runtime {

struct WorkerOptions {
  std::int64_t poll_max_ns = 1'000;    ///< longest pause between two polls of an idle worker
  std::int64_t poll_for_ns = 20'000;   ///< after polling in vain for so long it sleeps
  unsigned tasks_per_step = 256;
  bool timed = false;                  ///< measure each kernel
  bool timeline = false;               ///< keep each kernel's dates
  const Emulation* emulation = nullptr;  ///< with `timed`; null: kernels run
  const std::atomic<bool>* expects = nullptr;  ///< set: somebody wants to know when kernels will end (`TaskExtra::on_expected`)
  base::Attendance* attendance = nullptr;  ///< of what idle workers look after; null: nothing. Outlives the worker
};

/// A worker. Stepped by one driver, on one thread at a time; only `running` may be read by others.
///
/// A step runs up to `tasks_per_step` tasks. With nothing to do it asks to be stepped again after a pause that doubles each
/// time up to `poll_max_ns` (thesis 5.4.3: exponential back-off, so that polling workers do not load the memory bus); when it
/// has polled for `poll_for_ns` it announces itself idle, looks once more, and returns `kNever`.
///
/// One idle worker at a time attends to what wants to be looked after (`Attendance`: the network): it looks there and for tasks
/// in turn, without pauses, until looking does not pay, and then sleeps there. It leaves before it runs a task. What tasks that
/// end give the network to do, their worker sees to itself, before the next kernel or while it attends.
///
/// While an urgent task is expected (`ExpectedTasks`) and no worker is idle, one that would begin something long and less urgent
/// puts that back and rests for a while, as the policy says: it takes what is more urgent, and is idle to all others.
///
/// Cost of a task without statistics: its kernel's call, one exchange to seal, one load and at most one read-modify-write per
/// successor; no lock when it runs its own successor next.
class Worker final : public base::Steppable {
 public:
  Worker(unsigned index, const WorkerSpec& spec, const WorkerOptions& options, Executor& executor, const clock::Clock& clock,
         base::Log& log);

  std::int64_t step(std::int64_t now_ns) override;
  base::Attendance* attends() noexcept override { return attends_ ? options_.attendance : nullptr; }

  /// The caller's wait is over: nobody shall count on this worker. By its thread.
  void leave(std::int64_t now_ns);

  /// What it tells the trace: `task.*` and `sched.*` of tasks that it runs or makes ready, and its states.
  trace::Stream& trace() noexcept { return trace_; }

  /// The task whose kernel it runs, or null. For diagnosis, by any thread; the task may have ended meanwhile.
  const Task* running() const noexcept { return running_.load(std::memory_order_acquire); }
  std::int64_t running_since_ns() const noexcept { return running_since_ns_.load(std::memory_order_relaxed); }

  // Statistics: once the tasks of interest have ended.
  const std::unordered_map<const CodeletCore*, DurationStatistics>& durations() const noexcept { return durations_; }
  const std::vector<TimelineEvent>& timeline() const noexcept { return timeline_; }
  WorkerReport report(std::int64_t now_ns) const;

 private:
  bool run(Task& task);
  bool prepare(Task& task);
  bool begin(Task& task);
  bool present(const Task& task) const noexcept;
  void invoke(Task& task);
  void succeed(Task& task);
  void finish(Task& task);
  void end(Task& task);
  void tend();
  bool attend();
  void stop_attending();
  bool expects() const noexcept { return options_.expects != nullptr && options_.expects->load(std::memory_order_relaxed); }
  static void tell_expected(const Task& task, std::int64_t in_ns);
  bool emulate(Task& task, std::int64_t start_ns);
  std::optional<std::int64_t> emulated_ns(const Task& task) const;
  std::optional<std::int64_t> expected_ns(const Task& task) const;
  Task* next();
  bool holds(const Task& task);
  void end_hold();
  bool finds_nothing() const noexcept;
  void end_emulated();
  void invoke_special(Task& task, KernelCall& call);
  void give_back_private(Task& task, bool filled);
  void note_results(Task& task) noexcept;
  void fail(Task& task);
  void skip(Task& task);
  void measure(const Task& task, std::int64_t start_ns, std::int64_t end_ns);
  std::int64_t rest(std::int64_t now_ns);
  void back_to_work(std::int64_t now_ns);
  void note_idle_until(std::int64_t now_ns);
  void enter_state(trace::WorkerState state) {
    if (state_ == state) return;
    state_ = state;
    trace_.emit<trace::Type::worker_state>(static_cast<std::uint8_t>(state));
    at_instant_ = false;
  }
  void tell_popped(const Task& task);
  void tell_started(const Task& task);
  void tell_ended(const Task& task);

  const unsigned index_;
  const WorkerSpec spec_;
  const WorkerOptions options_;
  Executor& executor_;
  const clock::Clock& clock_;
  base::Log& log_;
  Origin origin_;
  bool announced_ = false;
  bool woken_ = false;
  bool attends_ = false;
  bool owes_ = false;               ///< it has promised to tend to what it gave the network to do
  std::int64_t pause_ns_ = 0;
  Task* emulated_ = nullptr;        ///< has begun, and ends at `emulated_until_ns_`
  std::int64_t emulated_until_ns_ = 0;
  std::int64_t hold_until_ns_ = 0;  ///< it waits for what is more urgent than `hold_above_`; 0: it does not
  std::int32_t hold_above_ = 0;
  std::uint64_t hold_for_ = 0;      ///< of `ExpectedTasks`
  base::Published<std::int64_t> idle_since_ns_{-1};  ///< -1: at work
  std::vector<void*> private_memory_;
  std::vector<std::vector<std::byte>> scratch_;

  alignas(64) std::atomic<const Task*> running_{nullptr};
  std::atomic<std::int64_t> running_since_ns_{0};
  std::unordered_map<const CodeletCore*, DurationStatistics> durations_;
  std::vector<TimelineEvent> timeline_;
  base::Published<std::int64_t> present_since_ns_{-1};  ///< -1: the caller's worker, outside of waits
  base::Published<std::uint64_t> tasks_;
  base::Published<double> busy_ns_;
  base::Published<double> idle_ns_;
  base::Published<std::uint64_t> holds_;
  base::Published<double> total_ns_;

  alignas(64) trace::Stream trace_;
  trace::WorkerState state_ = trace::WorkerState::absent;
  bool at_instant_ = false;         ///< what happens now bears the stamp of the last event
  std::uint64_t started_ticks_ = 0;
  std::uint64_t steals_told_ = 0;   ///< of the queues' count
};

}  // namespace tandem::runtime
