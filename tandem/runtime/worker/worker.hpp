// tandem/runtime/worker/worker.hpp: runs tasks, one after the other, in steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tandem/base/attendance.hpp"
#include "tandem/base/driver.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/runtime/exec/executor.hpp"
#include "tandem/runtime/worker/emulated_kernel.hpp"
#include "tandem/runtime/worker/hold.hpp"
#include "tandem/runtime/worker/idle_progress.hpp"
#include "tandem/runtime/worker/kernel_counters.hpp"
#include "tandem/runtime/worker/measurements.hpp"
#include "tandem/runtime/worker/private_memory.hpp"
#include "tandem/runtime/exec/worker_spec.hpp"
#include "tandem/runtime/worker/worker_trace.hpp"

namespace tandem::runtime {

struct WorkerOptions {
  std::int64_t poll_max_ns = 1'000;    ///< longest pause between two polls of an idle worker
  std::int64_t poll_for_ns = 20'000;   ///< a worker that has polled in vain for so long sleeps
  unsigned tasks_per_step = 256;
  bool timed = false;                  ///< measure each kernel
  bool timeline = false;               ///< keep the start and end of each kernel
  const base::OpenCounters* counters = nullptr;  ///< set: count each kernel (`task.counters`). Outlives the worker
  const Emulation* emulation = nullptr;  ///< with `timed`; null: kernels run
  const std::atomic<bool>* expects = nullptr;  ///< set: report when kernels are expected to end (`TaskExtra::on_expected`)
  base::Attendance* attendance = nullptr;  ///< what idle workers poll; null: nothing. Outlives the worker
};

/// A worker. One driver steps it, on one thread at a time; only `running` and `report` may be called by others.
///
/// A step runs up to `tasks_per_step` tasks. With nothing to do it asks to be stepped again after a pause that doubles each time
/// up to `poll_max_ns` (thesis 5.4.3: exponential back-off, so that polling workers do not load the memory bus). After
/// `poll_for_ns` it announces itself idle, looks once more, and returns `kNever`. One idle worker polls the network instead,
/// without pauses, until that is in vain for long, and then sleeps there (`IdleProgress`).
///
/// Its parts: what it measures (`Measurements`), what it traces (`WorkerTrace`), a task whose kernel is emulated
/// (`EmulatedKernel`), what the processor counts (`KernelCounters`), the hold for an urgent task (`Hold`), the network (`IdleProgress`),
/// private memory (`PrivateMemory`).
///
/// Cost of a task without statistics: its kernel's call, one exchange to seal, one load and at most one read-modify-write per
/// successor; no lock when it runs its own successor next.
class Worker final : public base::Steppable {
 public:
  Worker(unsigned index, const WorkerSpec& spec, const WorkerOptions& options, Executor& executor, const clock::Clock& clock);

  std::int64_t step(std::int64_t now_ns) override;
  base::Attendance* attends() noexcept override { return progress_.place_to_sleep(); }

  /// The caller's wait has ended: nobody may rely on this worker from here on. By its thread.
  void leave(std::int64_t now_ns);

  /// Its stream of the trace.
  trace::Stream& trace() noexcept { return trace_.stream; }

  /// The task whose kernel it runs, or null. For diagnosis, by any thread; the task may have ended meanwhile.
  const Task* running() const noexcept { return running_.load(std::memory_order_acquire); }

  const Measurements& measurements() const noexcept { return measurements_; }
  WorkerReport report(std::int64_t now_ns) const;

 private:
  // One step.
  Task* take();
  void queue_kept();
  bool run(Task& task);
  std::int64_t rest(std::int64_t now_ns);
  void back_to_work(std::int64_t now_ns);

  // One task.
  bool begin(Task& task);
  bool is_present(const Task& task) const noexcept;
  bool prepare(Task& task);
  bool run_timed(Task& task, bool expects);
  void invoke(Task& task);
  void end_emulated();
  void succeed(Task& task);
  void fail(Task& task);
  void skip(Task& task);
  void finish(Task& task);
  void end(Task& task);

  bool expects() const noexcept { return options_.expects != nullptr && options_.expects->load(std::memory_order_relaxed); }
  std::optional<std::int64_t> expected_ns(const Task& task) const;

  const unsigned index_;
  const WorkerSpec spec_;
  const WorkerOptions options_;
  Executor& executor_;
  const clock::Clock& clock_;
  Origin origin_;
  bool announced_ = false;     ///< it stands in the set of idle workers
  bool woken_ = false;         ///< somebody has chosen it for new work
  std::int64_t pause_ns_ = 0;  ///< between two polls
  IdleProgress progress_;
  EmulatedKernel emulated_;
  Hold hold_;
  PrivateMemory private_memory_;
  std::unique_ptr<KernelCounters> counters_;  ///< null: kernels are not counted

  alignas(64) std::atomic<const Task*> running_{nullptr};
  Measurements measurements_;
  alignas(64) WorkerTrace trace_;
};

}  // namespace tandem::runtime
