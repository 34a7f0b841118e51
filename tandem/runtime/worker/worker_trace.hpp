// tandem/runtime/worker/worker_trace.hpp: the events that a worker writes into its stream of the trace.
#pragma once

#include <cstdint>

#include "tandem/runtime/task/task.hpp"
#include "tandem/trace/stream.hpp"

namespace tandem::runtime {

/// A worker's stream, and its events: tasks taken, started, ended, and the worker's states. Used by the worker's thread.
///
/// A read of the TSC is most of an event's cost, so events that follow each other at once share a stamp: the end of a task, what
/// becomes ready by it, where that goes, and the next start behind a short kernel. An event type that is off costs one load and
/// a branch.
class WorkerTrace {
 public:
  trace::Stream stream;

  void enter_state(trace::WorkerState state) {
    if (state_ == state) return;
    state_ = state;
    stream.emit<trace::Type::worker_state>(static_cast<std::uint8_t>(state));
    shares_stamp_ = false;
  }
  /// The worker took `task` from the queues, which have counted `steals()` thefts by it so far.
  template <class Steals>
  void note_taken(const Task& task, Steals steals) {
    if (stream.any_on<trace::Type::task_popped, trace::Type::task_stolen>()) [[unlikely]] write_taken(task, steals());
  }
  void note_started(const Task& task) {
    if (stream.any_on<trace::Type::task_started>()) [[unlikely]] write_started(task);
  }
  void note_ended(const Task& task) {
    if (stream.any_on<trace::Type::task_ended, trace::Type::task_ready, trace::Type::task_pushed>()) [[unlikely]]
      write_ended(task);
  }
  void note_failed(const Task& task) { stream.emit<trace::Type::task_failed>(flow_position(task)); }
  void note_cancelled(const Task& task) {
    stream.emit<trace::Type::task_cancelled>(flow_position(task));
    shares_stamp_ = false;
  }

 private:
  void begin_event() {
    if (!shares_stamp_) stream.set_instant(stream.read_clock());
  }
  void write_taken(const Task& task, std::uint64_t steals);
  void write_started(const Task& task);
  void write_ended(const Task& task);

  trace::WorkerState state_ = trace::WorkerState::absent;
  bool shares_stamp_ = false;  ///< the next event bears the stamp of the last one
  std::uint64_t started_ticks_ = 0;
  std::uint64_t steals_ = 0;   ///< the queues' count at the last task
};

}  // namespace tandem::runtime
