// tandem/runtime/event/external_events.hpp: nodes of the graph that something outside the runtime completes.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "tandem/clock/clock.hpp"
#include "tandem/runtime/task/call_count.hpp"
#include "tandem/runtime/exec/executor.hpp"
#include "tandem/runtime/submit/submission.hpp"

namespace tandem::runtime {

class WorkerTeam;

/// The nodes of an event: tasks that read its data follow `readable`; the next writers of the data follow `released`
/// too, if the event has it.
struct EventTasks {
  TaskRef readable;
  TaskRef released;
};

/// Events: nodes that a network, a device or a thread of the program completes.
///
/// Life of an event: the submitting thread fills the task of `begin` (accesses, `TaskExtra::on_ready`) and submits it.
/// When its predecessors have ended, some thread calls `on_ready`, which must not block. Then exactly one of
/// `complete`, `complete_failed`, `complete_read` and `drop_behind_end` follows, from any thread, also from inside
/// `on_ready`.
///
/// The destructor of the runtime waits for calls that are under way (`drain`).
class ExternalEvents {
 public:
  ExternalEvents(Submission& submission, Executor& executor, WorkerTeam& workers, const clock::Clock& clock)
      : submission_(submission), executor_(executor), workers_(workers), clock_(clock) {}

  // --- the submitting thread
  Task& begin(std::string name, unsigned access_count);
  /// Submits the event; `event` is filled before the event can start, which may be before this returns. `after`: a node
  /// that comes first, whatever data it uses. With `with_release` the event gets its second node, which is completed
  /// like the first, in any order.
  void submit(Task& task, bool with_release, EventTasks& event, const TaskRef& after = {});

  // --- while a graph is recorded, on the submitting thread
  /// The model of an event: each replay calls `TaskExtra::on_ready` for a copy of it, with the same context.
  Task& begin_recorded(std::string name, unsigned access_count);
  /// Records the event. With `with_release` the released half is the next task of the recording. Throws UsageError.
  /// Returns the event's reference.
  TaskRef record(Task& event, bool with_release);

  // --- for `on_ready`, on any thread
  /// True if the event's data does not exist: nothing is to be started, and the caller completes the event at once.
  bool is_cancelled(Task& event) { return executor_.why_cancelled(event) != nullptr; }
  /// For an event that counts as a task. True: `is_behind_end` says whether to start the event or to `drop_behind_end`
  /// it. False: the ranks must first agree where a cancelled flow ends; `on_ready` is called again afterwards.
  bool may_begin(Task& event) {
    return executor_.may_begin(event) || executor_.ask_to_begin(event, clock_.now_ns()) != Cutoff::Answer::hold;
  }
  bool is_behind_end(const Task& event) const noexcept { return executor_.is_behind_end(flow_position(event)); }

  // --- events that only read one datum
  /// Lets `event` read in one of `nodes` (bit n: memory n) if main memory does not have the value. The event asks for
  /// its memory. Called before it is submitted, or before it asks again. `nodes` 0 stands for main memory alone; if the
  /// event has not asked before, it is then ready once the value is there.
  static void may_read_in(Task& event, std::uint32_t nodes) noexcept {
    event.extra->sources = nodes;
    if (nodes == 0) event.extra->node = 0;
  }
  /// For `on_ready`: the node where the value is, or where the event writes it.
  static NodeIndex node_of(const Task& event) noexcept { return static_cast<NodeIndex>(event.extra->node); }

  // --- events that replace the value of one datum
  /// Makes `event`, submitted with `EventMemory::later`, write in `node`, or without memory there in main memory
  /// (`node_of`). Called before it asks.
  static void write_in(Task& event, NodeIndex node) noexcept {
    event.extra->memory = EventMemory::within;
    event.extra->node = node;
  }

  // --- events that ask for their memory (`TaskExtra::asks`, `EventMemory::later`); any thread, one at a time for each
  /// `event` is ready: calls its `on_ready` again once its data has memory and its value is there, at once or from
  /// another thread.
  void ask(const TaskRef& event);
  /// `event` needs the memory no longer, and may ask again.
  void give_back(const TaskRef& event);

  // --- the end of an event, on any thread
  /// Completes `event`. With `failure`, the data that it writes does not exist, as if a kernel had thrown it.
  void complete(const TaskRef& event, std::exception_ptr failure = nullptr);
  /// Completes an event whose data does not exist because of a failure elsewhere; counts as no task.
  void complete_failed(const TaskRef& event, FlowFailure& failure);
  /// Completes an event that only read, or found nothing to read; counts as no task.
  void complete_read(const TaskRef& event);
  /// Completes an event that did not start, because the flow was cancelled before it.
  void drop_behind_end(const TaskRef& event);

  // --- events that will end soon, on any thread
  /// `event`, which has not ended and will not during the call, ends in about `in_ns`. If it is the last predecessor of
  /// an urgent task, a worker may wait for that task instead of beginning a long one (`Policy::waits`). Returns a
  /// number for `expect_no_more`, which the caller must call when the event has ended; 0: no task waits for this event
  /// alone.
  std::uint64_t expect_end(const TaskRef& event, std::int64_t in_ns);
  /// The greatest priority of the tasks that wait for `event`, which has not ended and will not during the call; no
  /// value: no task waits.
  static std::optional<std::int32_t> urgency_of(const TaskRef& event);
  void expect_no_more(std::uint64_t expected) { executor_.messages().expect_no_more(expected); }

  /// Waits for calls on other threads that are under way. No further ones begin.
  void drain() const noexcept { calls_.drain(); }

 private:
  void note_written(Task& event);

  Submission& submission_;
  Executor& executor_;
  WorkerTeam& workers_;
  const clock::Clock& clock_;
  CallCount calls_;
};

}  // namespace tandem::runtime
