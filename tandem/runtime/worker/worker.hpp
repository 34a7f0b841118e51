// tandem/runtime/worker/worker.hpp: a worker: its steps, and the life of a task on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/base/attendance.hpp"
#include "tandem/base/driver.hpp"
#include "tandem/base/log.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/runtime/exec/executor.hpp"
#include "tandem/runtime/sched/placing/durations.hpp"
#include "tandem/runtime/worker/duration_models.hpp"
#include "tandem/runtime/worker/hold.hpp"
#include "tandem/runtime/worker/idle_progress.hpp"
#include "tandem/runtime/worker/kernel_counters.hpp"
#include "tandem/runtime/worker/measurements.hpp"
#include "tandem/runtime/device/private_memory.hpp"
#include "tandem/runtime/exec/worker_spec.hpp"
#include "tandem/runtime/worker/worker_trace.hpp"

namespace tandem::runtime {

class Explainer;

struct WorkerOptions {
  std::int64_t poll_max_ns = 1'000;    ///< longest pause between two polls of an idle worker
  std::int64_t poll_for_ns = 20'000;   ///< a worker that has polled in vain for this time sleeps
  /// While latency limits messages, idle workers do not read the queues and wait to be woken.
  bool adaptive_polling = true;
  unsigned tasks_per_step = 256;
  /// Most tasks in one lane of a device; 1: none is launched before the one that it waits for has ended.
  unsigned stretch = 16;
  bool timed = false;                  ///< measure each kernel
  bool timeline = false;               ///< keep the start and end of each kernel
  /// Limit the number of memory-bound tasks that CPU workers share, or that a `PlacingPolicy` gives them
  /// (`MemoryGate`).
  bool gated = false;
  bool metered = false;                ///< note which kernels run (`Measurements::visit_busy`)
  const base::OpenCounters* counters = nullptr;  ///< set: count each kernel (`task.counters`). Outlives the worker
  const std::atomic<bool>* expects = nullptr;  ///< set: report expected ends of kernels (`TaskExtra::on_expected`)
  base::Attendance* attendance = nullptr;  ///< network for idle workers; null: none. Outlives the worker
  bool feeds = false;                  ///< the placer keeps tasks until a worker looks for one
  Durations* durations = nullptr;      ///< durations of this run. Outlive the worker
  DurationModels* models = nullptr;    ///< set: models that learn the durations of kernels. Outlive the worker
  const std::atomic<std::uint32_t>* pauses = nullptr;  ///< odd: no task begins. Outlives the worker
  Explainer* explainer = nullptr;      ///< set: explains which tasks the worker takes. Outlives the worker
  base::Log* log = nullptr;            ///< for failures of devices. Outlives the worker
};

/// A worker: `CoreWorker` runs kernels itself, `DeviceWorker` launches them on a device. One driver steps it, on one
/// thread at a time; only `visit_running`, `rests_in` and `report` may be called by others.
///
/// A step runs up to `tasks_per_step` tasks. With nothing to do it asks to be stepped again after a pause that doubles
/// each time up to `poll_max_ns` (thesis 5.4.3: exponential back-off, so that polling workers do not load the memory
/// bus). After `poll_for_ns` it announces itself idle, looks once more, and returns `kNever`. One idle worker polls the
/// network instead, without pauses, until that is in vain for long, and then sleeps there (`IdleProgress`).
///
/// Adaptive polling. While latency limits messages (`MessageCounts::are_latency_bound`) an idle worker does not poll:
/// it announces itself at once, looks once more, and waits awake at its own place for the rest of `poll_for_ns`. So it
/// touches nothing that the polling thread writes. The worker that polls the network wakes no other for what arrives,
/// but takes it itself (`ReadyQueues::Promise`); only if further messages are awaited it wakes one more worker, which
/// polls meanwhile. Whether latency limits messages is a hint, read anew each time. No wake-up is lost when it changes:
/// either way a worker comes back by itself, or has announced itself before its last look.
///
/// While the workers are paused (`WorkerOptions::pauses`) a worker begins no task, ends what its device has, and
/// sleeps, outside of the set of idle workers. Each pause has a number, which a worker publishes when it rests. So a
/// thread that ends a pause and begins another one cannot take the rest of an earlier pause for that of the new one.
///
/// Its parts: measurements (`Measurements`), traced events (`WorkerTrace`), processor
/// counters (`KernelCounters`), the hold for an urgent task (`Hold`), its side of the gate for memory-bound tasks
/// (`MemoryGate`), the network (`IdleProgress`), private memory (`PrivateMemory`).
class Worker : public base::Steppable {
 public:
  /// The device of `spec`, if it has one, outlives the worker.
  static std::unique_ptr<Worker> make(unsigned index, const WorkerSpec& spec, const WorkerOptions& options,
                                      Executor& executor, const clock::Clock& clock);

  std::int64_t step(std::int64_t now_ns) final;
  base::Attendance* attends() noexcept final { return progress_.place_to_sleep(); }
  bool waits_awake() const noexcept final { return waits_awake_; }

  /// Called when the caller's wait has ended: no other thread may rely on this worker from here on. By its thread.
  void leave(std::int64_t now_ns);

  /// Hands its measured durations to `WorkerOptions::models`. By its thread, or once that has ended.
  void hand_over_durations() {
    if (durations_ != nullptr) durations_->flush();
  }

  /// The value of `WorkerOptions::pauses` for which it rests: it has run nothing since. Any thread.
  std::uint32_t rests_in() const noexcept { return rests_in_.load(std::memory_order_acquire); }

  /// Its stream of the trace.
  trace::Stream& trace() noexcept { return trace_.stream; }
  /// Writes its state into the trace. By the worker's thread; for the caller's worker, which does nothing until the
  /// caller waits.
  void trace_state() { trace_.tell_state(); }

  /// Calls `visit(task)` for the task whose kernel it runs, or those that its device has. For diagnosis, by any thread;
  /// they may have ended meanwhile.
  virtual void visit_running(const std::function<void(const Task&)>& visit) const = 0;

  const Measurements& measurements() const noexcept { return measurements_; }
  WorkerReport report(std::int64_t now_ns) const;

 protected:
  Worker(unsigned index, const WorkerSpec& spec, const WorkerOptions& options, Executor& executor,
         const clock::Clock& clock);

  // What cores and devices do differently.
  /// Runs tasks or launches them. When to step again.
  virtual std::int64_t step_tasks(std::int64_t now_ns) = 0;
  /// Ends tasks that have begun. When to call it again; nothing: none is left.
  virtual std::optional<std::int64_t> end_begun(std::int64_t) { return {}; }
  /// The caller's wait has ended, and nobody looks after this worker for a while.
  virtual void hurry(std::int64_t) {}
  /// Why a transfer for `task` has failed, if that decides whether another worker runs it.
  virtual std::exception_ptr take_refusal(const Task&) { return nullptr; }
  /// Throws if no task can run here any more.
  virtual void check_usable() {}
  /// `task` cannot run here since `failure` came before its kernel: it runs elsewhere, or fails.
  virtual void refuse(Task& task, const std::exception_ptr& failure);
  /// How long the task will run here, if that is known.
  virtual std::optional<std::int64_t> expected_ns(const Task& task) const {
    return measurements_.mean_ns(task.codelet);
  }

  // One step.
  void wake_up();
  Task* take_unless_holding();
  void queue_kept();
  std::int64_t rest(std::int64_t now_ns);
  bool is_paused() const noexcept { return (options_.pauses->load(std::memory_order_relaxed) & 1U) != 0; }
  void back_to_work(std::int64_t now_ns);
  void work_comes(std::int64_t now_ns) {
    progress_.do_rest();
    if (measurements_.is_idle() || woken_) back_to_work(now_ns);
  }

  // One task.
  bool begin(Task& task);
  bool is_ready(Task& task);
  bool prepare(Task& task);
  Durations::Choice implementation_for(const Task& task);
  void learn(const Task& task, const Durations::Choice& choice, std::int64_t start_ns, std::int64_t end_ns);
  void invoke(Task& task, unsigned implementation);
  void succeed(Task& task);
  void fail(Task& task, const std::exception_ptr& exception);
  void skip(Task& task);
  void finish(Task& task);
  bool expects() const noexcept {
    return options_.expects != nullptr && options_.expects->load(std::memory_order_relaxed);
  }

  const unsigned index_;
  const WorkerSpec spec_;
  const WorkerOptions options_;
  Executor& executor_;
  const clock::Clock& clock_;
  Origin origin_;
  bool announced_ = false;     ///< it stands in the set of idle workers
  bool woken_ = false;         ///< another thread has chosen it for new work
  Hold hold_;
  std::unique_ptr<DurationModels::Collector> durations_;  ///< null: nothing is learnt
  const bool measures_;  ///< each kernel
  Measurements measurements_;

 private:
  Task* take();
  Task* pass_memory_gate(Task* task);
  void leave_memory_gate();
  bool is_memory_bound(const Task& task) const;
  bool stays_here(const Task& task) const;
  void explain(const Task& task, bool kept);
  base::IdleWork::Found poll_network();
  bool spares_queues() const noexcept;
  std::int64_t rest_in_pause(std::uint32_t pause, std::int64_t now_ns);
  bool is_present(const Task& task) const noexcept;
  bool has_private_copies(const Task& task) const noexcept;
  Durations::Choice choose_implementation(const Task& task);
  void end(Task& task);

  bool waits_awake_ = false;   ///< in the set of idle workers, for now; see `Steppable`
  std::int64_t pause_ns_ = 0;  ///< between two polls
  IdleProgress progress_;
  MemoryGate* const gate_;      ///< null: nothing limits memory-bound tasks here
  bool inside_gate_ = false;    ///< its last task is memory-bound
  PrivateMemory private_memory_;
  std::unique_ptr<KernelCounters> counters_;  ///< null: kernels are not counted
  const bool feeds_;     ///< see `WorkerOptions`
  const bool adapts_polling_;  ///< see `WorkerOptions`; a worker that shares tasks
  std::atomic<std::uint32_t> rests_in_{0};

 protected:
  alignas(64) WorkerTrace trace_;
};

}  // namespace tandem::runtime
