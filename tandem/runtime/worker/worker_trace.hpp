// tandem/runtime/worker/worker_trace.hpp: the events that a worker writes into its stream of the trace.
#pragma once

#include <cstdint>
#include <optional>

#include "tandem/runtime/task/task.hpp"
#include "tandem/trace/stream.hpp"

namespace tandem::runtime {

/// A worker's stream, and its events: tasks taken, started, ended, and the worker's states. Used by the worker's thread.
///
/// A task is one record: `task.ran`, written at its start, with the way by which it came to the worker, and completed in place by
/// its length at its end. So a killed program's trace has the tasks that ran. Where that does not do, there are records of their own
/// (`sched.popped`, `task.started`, `task.ended` and so on): when something was recorded between the two, when the selection has only
/// some of these events, and for kernels of more than 2^32 ticks. Readers see the same events either way.
///
/// A read of the TSC is most of an event's cost, so events that follow each other at once share a stamp: the end of a task, what
/// becomes ready by it, where that goes, and the next start behind a short kernel. An event type that is off costs one load and
/// a branch.
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
  /// Its state, once its stream is attached.
  void tell_state() { stream.emit<trace::Type::worker_state>(static_cast<std::uint8_t>(state_)); }
  /// The worker took `task` from the queues: from its own, from one that workers share, or, if `victim()` has one, from that of
  /// another worker.
  template <class Victim>
  void note_taken(const Task& task, Victim victim) {
    if (stream.any_on<trace::Type::task_popped, trace::Type::task_stolen>()) [[unlikely]] {
      const std::optional<unsigned>& from = victim();
      if (from) [[unlikely]] take<trace::Type::task_stolen>(task, *from);
      else if (taken_ == Taken::nothing && shares_stamp_ && is_one_record<trace::Type::task_popped>()) note_way(task, Taken::popped);
      else take<trace::Type::task_popped>(task, 0);
    }
  }
  /// The worker has made `task` ready, and takes it without queueing it. `told`: that it is ready was recorded already.
  void note_kept(const Task& task, bool told) {
    if (!told && stream.any_on<trace::Type::task_ready>()) [[unlikely]] {
      if (taken_ == Taken::nothing && is_one_record<trace::Type::task_ready>()) note_way(task, Taken::kept);
      else keep(task);
    }
  }
  /// The worker has made `task` ready, and neither runs it nor says in whose queue it is.
  void note_ready(const Task& task, bool told) {
    if (!told) stream.append<trace::Type::task_ready>(flow_position(task));
  }
  /// `task`, whose codelet has a choice, runs that implementation next.
  void note_implementation(const Task& task, unsigned implementation) noexcept {
    // At the time of the event before, from which a record of a run may have the time when its task became ready.
    stream.emit_at<trace::Type::task_implementation>(stream.last_event(), static_cast<std::uint32_t>(flow_position(task)), static_cast<std::uint8_t>(implementation));
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
  /// How the worker came to the task that it is going to start, and the record that says so together with its start. Not recorded yet.
  enum class Taken : std::uint8_t {
    nothing = 0,
    kept = static_cast<std::uint8_t>(trace::Type::task_ran_kept),
    popped = static_cast<std::uint8_t>(trace::Type::task_ran_popped),
    stolen = static_cast<std::uint8_t>(trace::Type::task_ran_stolen),
  };
  /// Whether one record says this and that the task ran.
  template <trace::Type T>
  bool is_one_record() const noexcept {
    return stream.all_on<T, trace::Type::task_started, trace::Type::task_ended>();
  }

  void begin_event() {
    if (!shares_stamp_) stream.set_instant(stream.read_clock());
  }
  /// At the instant.
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
  bool shares_stamp_ = false;  ///< the next event bears the stamp of the last one
  Taken taken_ = Taken::nothing;
  std::uint16_t victim_ = 0;   ///< of a theft
  std::uint32_t taken_task_ = 0;
  std::uint64_t taken_ticks_ = 0;  ///< when it was taken, or, of one that was kept, became ready
  std::uint64_t started_ticks_ = 0;
};

}  // namespace tandem::runtime
