// tandem/runtime/worker/worker_team.hpp: the workers of a runtime, their queues, and their common measurements.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "tandem/base/attendance.hpp"
#include "tandem/base/driver.hpp"
#include "tandem/runtime/exec/executor.hpp"
#include "tandem/runtime/sched/placing/durations.hpp"
#include "tandem/runtime/sched/queues/ready_queues.hpp"
#include "tandem/runtime/worker/statistics.hpp"
#include "tandem/runtime/worker/worker.hpp"
#include "tandem/runtime/worker/world.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::runtime {

class Energy;
class Explainer;
class ModelledHost;
class Placer;
class RecordedOrder;

/// Makes the workers of a world and hands them to its driver. With `World::caller_works` worker 0 is the caller's,
/// which works only while the caller waits.
///
/// Threads: the submitting thread, except `report_expected_ends`.
class WorkerTeam {
 public:
  /// Connects `executor` with the other parts. All of them outlive this; the driver is stopped before this is
  /// destroyed.
  WorkerTeam(World& world, const CoreOptions& options, TaskPool& pool, Executor& executor, Memory& memory);
  ~WorkerTeam();
  /// Lets workers run tasks.
  void start();

  /// Begins a pause, in which workers begin no task. `rest` is true once none runs one. Not while they are paused.
  void begin_pause();
  bool rest() const noexcept;
  void end_pause();
  bool are_paused() const noexcept { return (pauses_.load(std::memory_order_relaxed) & 1U) != 0; }

  /// The caller's wait has ended.
  void leave_caller(std::int64_t now_ns) {
    if (caller_works_) workers_[0]->leave(now_ns);
  }

  /// The network for idle workers. Set by the submitting thread, and unset before the network is destroyed.
  base::Attendance& attendance() noexcept { return attendance_; }
  /// Makes workers report, when kernels begin, when these are expected to end (`TaskExtra::on_expected`): by the mean
  /// duration of their codelet on that worker so far, or by the emulation. Any thread. Costs two clock reads for each
  /// kernel.
  void report_expected_ends() noexcept { expects_.store(true, std::memory_order_relaxed); }

  /// Whether the policy gives each task of the program to a worker, so that all are restricted.
  bool places_tasks() const noexcept { return placer_ != nullptr; }
  bool goes_by_depth() const noexcept;  ///< whether `flow_depth` of tasks must be counted

  void trace_to(trace::Session& session);

  /// Statistics, exact once the tasks of interest have ended, close while they run.
  StatisticsReport statistics() const;
  /// With `CoreOptions::timeline`: all kernels by their start.
  std::vector<TimelineEvent> timeline() const;

  /// A task whose kernel runs.
  struct Running {
    unsigned worker = 0;
    const Task* task = nullptr;
  };
  /// For diagnosis: what the workers and their devices run, by worker.
  std::vector<Running> running() const;

  /// Hands measured durations to `CoreOptions::models`. After the driver was stopped.
  void hand_over_durations();

  /// Takes the last sample of energy. After the driver was stopped.
  void finish_energy();
  /// Powers measured by counters in this run; empty: there are none.
  model::PowerTable measured_powers() const;

  /// Ends the devices. After the driver was stopped.
  void finish_devices() noexcept;

 private:
  /// Rests for ever; it stands for a caller that does not work.
  class Idler final : public base::Steppable {
   public:
    std::int64_t step(std::int64_t) override { return base::kNever; }
  };

  void wake_all();
  Device* emulate(unsigned worker, const WorkerSpec& spec, const CoreOptions& options);
  unsigned first() const noexcept { return caller_works_ ? 1 : 0; }  ///< first worker that the driver steps

  const bool caller_works_;
  const clock::Clock& clock_;
  const std::vector<WorkerSpec> specs_;
  const Emulation emulation_;
  const std::unique_ptr<ModelledHost> own_host_;  ///< of `models_`, where the options name none
  const base::OpenCounters counters_;
  base::Attendance attendance_;
  std::atomic<bool> expects_{false};
  std::atomic<std::uint32_t> pauses_{0};  ///< odd: they are paused. Written by the submitting thread
  std::unique_ptr<ReadyQueues> queues_;
  std::unique_ptr<Explainer> explainer_;  ///< null: option `explain` is not set
  Durations durations_;
  std::unique_ptr<RecordedOrder> order_;  ///< null: no recorded run is followed
  std::unique_ptr<Placer> placer_;  ///< null: the policy does not place, or all workers are equal
  std::vector<std::unique_ptr<Device>> models_;  ///< devices of workers whose tasks take a modelled time
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Energy> energy_;
  Idler idler_;
};

}  // namespace tandem::runtime
