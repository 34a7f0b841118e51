// tandem/runtime/runtime_core.hpp: the runtime of one process, which owns its parts. Without the types of the front
// end.
#pragma once

#include <cstdint>
#include <memory>

#include "tandem/runtime/submit/data_registry.hpp"
#include "tandem/runtime/event/external_events.hpp"
#include "tandem/runtime/exec/executor.hpp"
#include "tandem/runtime/memory/memory.hpp"
#include "tandem/runtime/submit/submission.hpp"
#include "tandem/runtime/trace_link.hpp"
#include "tandem/runtime/wait/accesses.hpp"
#include "tandem/runtime/wait/caller_loop.hpp"
#include "tandem/runtime/wait/waits.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem::runtime {

class FlowChart;
class LeftReplays;
class WorkerTeam;
struct StatisticsReport;

/// Runtime of one process: makes the parts of a world, connects them, and ends them in order. Callers name the part.
///
/// Threads. The thread that constructs it is the submitting thread: it alone calls the parts, except for functions that
/// say otherwise, and it works as worker 0 while it waits. From another thread or from inside a kernel they throw
/// `UsageError`.
class RuntimeCore final {
 public:
  RuntimeCore(World world, const CoreOptions& options);
  ~RuntimeCore();
  RuntimeCore(const RuntimeCore&) = delete;
  RuntimeCore& operator=(const RuntimeCore&) = delete;
  /// First step of the destructor: waits for all tasks, brings data to the user's memory, and stops the workers. False:
  /// that failed, or a wait would have thrown; the log says why. A second call does nothing and returns true.
  bool shut_down();
  /// Whether `shut_down` could not write requested statistics or the chart.
  bool has_lost_reports() const noexcept { return has_lost_reports_; }
  /// Stops workers from beginning tasks; returns when none runs one.
  void pause();
  /// Lets workers go on. Without effect when they are not paused.
  void resume();
  /// Makes all parts write their events to `session`, which outlives the runtime. Called once.
  void trace_to(trace::Session& session);

  DataRegistry& data() noexcept { return data_; }              ///< registers and unregisters data
  Submission& submission() noexcept { return submission_; }    ///< begins, checks and submits tasks
  const Submission& submission() const noexcept { return submission_; }
  ExternalEvents& events() noexcept { return events_; }        ///< nodes that something outside completes
  Accesses& accesses() noexcept { return accesses_; }  ///< accesses of the application; waits for one task or datum
  Waits& waits() noexcept { return waits_; }  ///< waits for the whole flow; its failures, its cancellation
  const Waits& waits() const noexcept { return waits_; }
  CallerLoop& loop() noexcept { return loop_; }                ///< work of the submitting thread inside a wait
  Executor& executor() noexcept { return executor_; }          ///< ready and ended tasks
  Memory& memory() noexcept { return memory_; }                ///< memory nodes and replicas
  WorkerTeam& workers() noexcept { return *workers_; }         ///< workers and their measurements
  const WorkerTeam& workers() const noexcept { return *workers_; }
  StatisticsReport statistics();                               ///< statistics of all parts
  TraceLink& trace() noexcept { return trace_; }               ///< descriptions for a trace
  LeftReplays& left_replays() noexcept { return *left_replays_; }  ///< replays of destroyed graphs

  const World& world() const noexcept { return world_; }
  base::Log& log() noexcept { return *world_.log; }

 private:
  void write_reports() noexcept;

  World world_;
  const CoreOptions options_;
  const std::uint32_t number_;
  Executor executor_;
  Memory memory_;
  Submission submission_;
  std::unique_ptr<WorkerTeam> workers_;
  CallerLoop loop_;
  DataRegistry data_;
  Accesses accesses_;
  Waits waits_;
  ExternalEvents events_;
  TraceLink trace_;
  std::unique_ptr<LeftReplays> left_replays_;
  std::unique_ptr<FlowChart> chart_;
  void limit(NodeIndex node, std::size_t bytes);

  class Foresight;
  std::unique_ptr<Foresight> foresight_;  ///< null if no memory is limited
  bool is_shut_down_ = false;
  bool has_lost_reports_ = false;
};

}  // namespace tandem::runtime
