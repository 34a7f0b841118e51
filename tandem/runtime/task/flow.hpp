// tandem/runtime/task/flow.hpp: the sequential task flow: infers from accesses what each task must wait for.
#pragma once

#include <cstdint>
#include <utility>

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/dependencies.hpp"
#include "tandem/runtime/task/pool.hpp"
#include "tandem/runtime/task/submission_trace.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// Observes the graph as it is inferred, edges to ended tasks included: for exports, and for foresight.
class GraphObserver {
 public:
  virtual ~GraphObserver() = default;
  virtual void node(Task& task) = 0;
  virtual void edge(TaskId from, const Task& to, const Handle* data) = 0;
};

/// What the flow needs from the runtime: tasks of its own that stand for groups.
class FlowHost {
 public:
  virtual ~FlowHost() = default;
  /// Makes a task without work that ends when its predecessors have; `Flow::finish_entering` enters it.
  virtual Task* make_join() = 0;
  /// Makes the task that adds the partial results of `handle` to it; it writes the handle.
  virtual Task* make_combine(Handle& handle) = 0;
  /// Called when such a task waits for no other.
  virtual void entered_ready(Task& task) = 0;
};

/// Enters tasks into the graph: infers from their accesses what they wait for (`dependencies.hpp`), and links them to
/// the predecessors that have not ended. Used by the submitting thread alone; it shares with workers only the lists of
/// successors (`SealedList`) and the counts of predecessors.
class Flow {
 public:
  Flow(TaskPool& pool, FlowHost& host) : pool_(pool), host_(host) {}

  void set_observer(GraphObserver* observer) noexcept {
    observer_ = observer;
    watched_ = observer != nullptr;
  }
  SubmissionTrace& trace() noexcept { return trace_; }

  /// Begins to enter `task`, whose accesses are set; then any number of `depend`; then `finish_entering`.
  void begin_entering(Task& task) noexcept {
    edges_ = 0;
    task.waits.store(kGuard, std::memory_order_relaxed);
    if (trace_.on()) [[unlikely]] begin_tracing(task);
    if (__builtin_expect(watched_, 0) && observer_ != nullptr) observer_->node(task);
  }

  /// Infers the dependencies of all accesses of `task` and makes it the last user of its data.
  void enter_accesses(Task& task) {
    AccessSlot* slots = task.accesses();
    for (unsigned i = 0; i < task.access_count; ++i)
      if (!slots[i].alias()) enter(task, slots[i]);
  }

  /// Makes `task` wait for `predecessor`, through `link`, or, if that is null, through a link of the pool.
  void depend(Task& task, Link* link, const TaskRef& predecessor, const Handle* data, bool explicitly = false) {
    if (predecessor.task == nullptr) return;
    if (__builtin_expect(watched_, 0)) note_edge(predecessor.id, task, data);
    if (predecessor.task->id != predecessor.id) return;  // ended and reused
    if (link == nullptr) link = pool_.extra_link(task);
    link->lead_to(&task, explicitly);
    if (predecessor.task->successors.add(link)) ++edges_;
  }

  /// Whether a trace records the entered task, the task waits for no other, and its record may say where it goes: then
  /// `finish_entering_pushed` may replace `finish_entering`.
  bool takes_pushed() const noexcept { return __builtin_expect(traces_, 0) && edges_ == 0 && trace_.takes_pushed(); }
  /// Ends the entry of a ready task that goes into `queue` next.
  void finish_entering_pushed(Task& task, std::uint32_t queue) noexcept {
    trace_.end_pushed(task, queue);
    traces_ = false;
    watched_ = observer_ != nullptr;
    task.waits.store(0, std::memory_order_relaxed);
  }
  /// Ends the entry. True: the task waits for no other, and the caller makes it ready.
  bool finish_entering(Task& task) noexcept {
    if (__builtin_expect(traces_, 0)) finish_tracing(task);
    if (edges_ == 0) {
      task.waits.store(0, std::memory_order_relaxed);
      return true;
    }
    return task.waits.fetch_sub(kGuard - edges_, std::memory_order_acq_rel) == kGuard - edges_;
  }

  /// Ends a group of reductions on `handle`, if one is open: enters the task that combines.
  void close_reduction(Handle& handle) {
    if (handle.flow.kind == GroupKind::reducers) close(handle);
  }

  /// Infers one access of a recorded task, whose count holds `kGuard` already, and adds its predecessors to the count.
  void enter_recorded(Task& task, AccessSlot& slot) {
    edges_ = 0;
    enter(task, slot);
    if (edges_ != 0) task.waits.fetch_add(edges_, std::memory_order_relaxed);
  }
  /// Makes a recorded writer that comes after readers of its own recording wait for live readers, too.
  void follow_members(Task& task, const Handle& handle) {
    edges_ = 0;
    for (const TaskRef& member : handle.flow.members) depend(task, nullptr, member, &handle);
    if (edges_ != 0) task.waits.fetch_add(edges_, std::memory_order_relaxed);
  }
  /// Ends an open group of commuting or reducing accesses.
  void close_open_group(Handle& handle) {
    if (handle.flow.kind == GroupKind::reducers ||
        (handle.flow.kind != GroupKind::readers && !handle.flow.members.empty()))
      close(handle);
  }

  static constexpr std::int32_t kGuard = 1 << 30;

 private:
  /// An access of the entered task; `link` null: the task has no access, and waits through links of the pool.
  struct Follower {
    Flow& flow;
    Task& entered;
    Link* link;
    const Handle& handle;

    TaskRef task() const noexcept { return {&entered, entered.id}; }
    void follow_writer(const FlowState& state) { flow.depend(entered, link, state.writer, &handle); }
    void follow_members(const FlowState& state) {
      Link* next = link;
      for (const TaskRef& member : state.members) flow.depend(entered, std::exchange(next, nullptr), member, &handle);
    }
  };
  struct Groups;

  void enter(Task& task, AccessSlot& slot) {
    Handle& handle = *slot.handle();
    enter_access(slot.mode(), handle.flow, Follower{*this, task, &slot.link, handle}, [&] { close(handle); });
  }
  /// Replaces the members of a group by one task that follows them all, so that the next group needs one edge per
  /// member.
  void close(Handle& handle);

  void begin_tracing(const Task& task) noexcept {
    trace_.begin(task);
    traces_ = watched_ = true;
  }
  void note_edge(TaskId from, const Task& to, const Handle* data) {
    if (traces_) trace_.depend(from);
    if (observer_ != nullptr) observer_->edge(from, to, data);
  }
  void finish_tracing(const Task& task) {
    traces_ = trace_.end(task, edges_ == 0 && task.kind == TaskKind::kernel ? std::uint32_t{trace::kNotPushed}
                                                                            : SubmissionTrace::kWaits);
    watched_ = traces_ || observer_ != nullptr;
  }

  TaskPool& pool_;
  FlowHost& host_;
  GraphObserver* observer_ = nullptr;
  std::int32_t edges_ = 0;
  bool traces_ = false;   ///< a trace records the entered task
  bool watched_ = false;  ///< the entered task is traced, or there is an observer
  SubmissionTrace trace_;
};

}  // namespace tandem::runtime
