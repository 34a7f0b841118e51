// tandem/runtime/worker/worker_trace.hpp: the events that a worker writes into its stream of the trace.
#pragma once

#include <cstdint>
#include <optional>

#include "tandem/runtime/task/task.hpp"
#include "tandem/trace/stream.hpp"

namespace tandem::runtime {

/// A worker's stream, and its events: tasks taken, started, ended, and the worker's states. Used by the worker's
/// thread.
///
/// A task is one record: `task.ran`, written at its start, with the way by which it came to the worker, and completed
/// in place by its length at its end. So a killed program's trace has the tasks that ran. Separate records
/// (`sched.popped`, `task.started`, `task.ended` and so on) are written in three cases: something was recorded between
/// start and end, the selection has only some of these events, or the kernel takes more than 2^32 ticks. Readers see
/// the same events either way.
///
/// A read of the TSC is most of an event's cost, so events that follow each other at once share a stamp: the end of a
/// task, the tasks that it makes ready, their pushes, and the next start behind a short kernel. An event type that is
/// off costs one load and a branch.
class WorkerTrace {
 public:
  trace::Stream stream;

  void enter_state(trace::WorkerState state) {
    if (taken_ != Taken::nothing) [[unlikely]] write_taken();
    if (state_ == state) return;
    state_ = state;
    stream.emit<trace::Type::worker_state>(static_cast<std::uint8_t>(state));
    shares_stamp_ = false;
  }
  /// Writes its state, once its stream is attached.
  void tell_state() { stream.emit<trace::Type::worker_state>(static_cast<std::uint8_t>(state_)); }
  /// Notes that the worker took `task` from its own queue, from a shared one, or, if `victim()` has a value, from
  /// another worker's.
  template <class Victim>
  void note_taken(const Task& task, Victim victim) {
    if (stream.any_on<trace::Type::task_popped, trace::Type::task_stolen>()) [[unlikely]] {
      const std::optional<unsigned>& from = victim();
      if (from) [[unlikely]] take<trace::Type::task_stolen>(task, *from);
      else if (taken_ == Taken::nothing && shares_stamp_ && is_one_record<trace::Type::task_popped>())
        note_way(task, Taken::popped);
      else take<trace::Type::task_popped>(task, 0);
    }
  }
  /// Notes that the worker has made `task` ready, and takes it without queueing it. `told`: its readiness was recorded
  /// already.
  void note_kept(const Task& task, bool told) {
    if (!told && stream.any_on<trace::Type::task_ready>()) [[unlikely]] {
      if (taken_ == Taken::nothing && is_one_record<trace::Type::task_ready>()) note_way(task, Taken::kept);
      else keep(task);
    }
  }
  /// Notes that the worker has made `task` ready, without running it or saying in which queue it is.
  void note_ready(const Task& task, bool told) {
    if (!told) stream.append<trace::Type::task_ready>(flow_position(task));
  }
  /// Notes that `task`, whose codelet has a choice, runs that implementation next.
  void note_implementation(const Task& task, unsigned implementation) noexcept {
    // The stamp is that of the event before, from which a record of a run may have the time when its task became ready.
    stream.emit_at<trace::Type::task_implementation>(stream.last_event(),
                                                     static_cast<std::uint32_t>(flow_position(task)),
                                                     static_cast<std::uint8_t>(implementation));
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
    if (taken_ != Taken::nothing) [[unlikely]] write_taken();
    stream.emit<trace::Type::task_cancelled>(flow_position(task));
    shares_stamp_ = false;
  }

 private:
  /// The way of the next task to the worker, to be recorded together with its start.
  enum class Taken : std::uint8_t {
    nothing = 0,
    kept = static_cast<std::uint8_t>(trace::Type::task_ran_kept),
    popped = static_cast<std::uint8_t>(trace::Type::task_ran_popped),
    stolen = static_cast<std::uint8_t>(trace::Type::task_ran_stolen),
  };
  /// Whether one record has both this way and the task's run.
  template <trace::Type T>
  bool is_one_record() const noexcept {
    return stream.all_on<T, trace::Type::task_started, trace::Type::task_ended>();
  }

  void begin_event() {
    if (!shares_stamp_) stream.set_instant(stream.read_clock());
  }
  /// Notes the way of a task at the present instant.
  void note_way(const Task& task, Taken way) noexcept {
    taken_ = way;
    taken_task_ = static_cast<std::uint32_t>(flow_position(task));
    taken_ticks_ = stream.instant();
  }
  template <trace::Type T>
  void take(const Task& task, unsigned victim);
  void keep(const Task& task);
  void write_taken();
  bool write_ran(const Task& task);
  void write_started(const Task& task);
  void write_started_slowly(const Task& task);
  void write_ended(const Task& task);
  void write_ended_at(const Task& task, std::uint64_t ticks);
  void write_ended_by_clock(const Task& task);
  void write_end(std::uint32_t number);

  trace::WorkerState state_ = trace::WorkerState::absent;
  bool shares_stamp_ = false;  ///< the next event has the stamp of the last one
  Taken taken_ = Taken::nothing;
  std::uint16_t victim_ = 0;   ///< victim of a theft
  std::uint32_t taken_task_ = 0;
  std::uint64_t taken_ticks_ = 0;  ///< when the task was taken, or, if kept, became ready
  std::uint64_t started_ticks_ = 0;
};

}  // namespace tandem::runtime
