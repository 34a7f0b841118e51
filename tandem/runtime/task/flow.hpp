// tandem/runtime/task/flow.hpp: the sequential task flow: infers from accesses what each task must wait for.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/pool.hpp"
#include "tandem/runtime/task/submission_trace.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// Is told of the graph as it is inferred, edges to tasks that have already ended included. For exports.
class GraphObserver {
 public:
  virtual ~GraphObserver() = default;
  virtual void node(const Task& task) = 0;
  virtual void edge(TaskId from, const Task& to, const Handle* data) = 0;
};

/// What the flow needs from the runtime: tasks of its own that stand for groups.
class FlowHost {
 public:
  virtual ~FlowHost() = default;
  /// A task that does nothing and ends at once when its predecessors have; entered by `Flow::finish_entering`.
  virtual Task* make_join() = 0;
  /// The task that adds the partial results of `handle` to it; it writes the handle.
  virtual Task* make_combine(Handle& handle) = 0;
  /// A task of these that waits for nobody.
  virtual void entered_ready(Task& task) = 0;
};

/// Dependency inference (Europar article, section 4.1; thesis 1.3.1): read after write, write after read, write after write, with
/// commutative accesses and reductions as groups. Used by the submitting thread alone; what it shares with workers are the lists
/// of successors (`SealedList`) and the counts of predecessors.
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
    if (trace_.on()) [[unlikely]] begin_tracing();
    if (__builtin_expect(watched_, 0) && observer_ != nullptr) observer_->node(task);
  }

  /// Infers the dependencies of all accesses of `task` and makes it the last user of its data.
  void enter_accesses(Task& task) {
    AccessSlot* slots = task.accesses();
    for (unsigned i = 0; i < task.access_count; ++i)
      if (!slots[i].alias()) enter(task, slots[i]);
  }

  /// `task` waits for `predecessor`, through `link`, or through a link of the pool when that is null.
  void depend(Task& task, Link* link, const TaskRef& predecessor, const Handle* data, bool explicitly = false) {
    if (predecessor.task == nullptr) return;
    if (__builtin_expect(watched_, 0)) tell_edge(predecessor.id, task, data);
    if (predecessor.task->id != predecessor.id) return;  // ended and reused
    if (link == nullptr) link = pool_.extra_link(task);
    link->lead_to(&task, explicitly);
    if (predecessor.task->successors.add(link)) ++edges_;
  }

  /// True: the task waits for nobody, and the caller makes it ready.
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
    if (handle.flow.kind == GroupKind::reducers) close_group(handle);
  }

  /// For a recorded task, whose count holds `kGuard` already: infers one access, and adds what it waits for to its count.
  void enter_recorded(Task& task, AccessSlot& slot) {
    edges_ = 0;
    enter(task, slot);
    if (edges_ != 0) task.waits.fetch_add(edges_, std::memory_order_relaxed);
  }
  /// The same for a writer that comes after readers of its own recording: it waits for live readers too.
  void follow_members(Task& task, const Handle& handle) {
    edges_ = 0;
    for (const TaskRef& member : handle.flow.members) depend(task, nullptr, member, &handle);
    if (edges_ != 0) task.waits.fetch_add(edges_, std::memory_order_relaxed);
  }
  /// Ends an open group of commuting or reducing accesses.
  void close_open_group(Handle& handle) {
    if (handle.flow.kind == GroupKind::reducers || (handle.flow.kind != GroupKind::readers && !handle.flow.members.empty()))
      close_group(handle);
  }

  static constexpr std::int32_t kGuard = 1 << 30;

 private:

  void enter(Task& task, AccessSlot& slot) {
    switch (slot.mode()) {
      case AccessMode::read: enter_group(task, slot, GroupKind::readers); break;
      case AccessMode::write:
      case AccessMode::read_write: enter_writer(task, slot); break;
      case AccessMode::commute: enter_group(task, slot, GroupKind::commuters); break;
      case AccessMode::reduce: enter_group(task, slot, GroupKind::reducers); break;
      case AccessMode::scratch: break;
    }
  }

  void enter_writer(Task& task, AccessSlot& slot) {
    Handle& handle = *slot.handle();
    FlowState& flow = handle.flow;
    if (__builtin_expect(flow.kind == GroupKind::reducers, 0)) close_group(handle);
    if (flow.members.empty()) {
      depend(task, &slot.link, flow.writer, &handle);
    } else {
      Link* link = &slot.link;
      for (const TaskRef& member : flow.members) {
        depend(task, link, member, &handle);
        link = nullptr;
      }
      flow.members.clear();
      flow.kind = GroupKind::readers;
    }
    flow.writer = {&task, task.id};
  }

  void enter_group(Task& task, AccessSlot& slot, GroupKind kind) {
    Handle& handle = *slot.handle();
    FlowState& flow = handle.flow;
    if (__builtin_expect(flow.kind != kind, 0)) {
      if (!flow.members.empty()) close_group(handle);
      flow.kind = kind;
    }
    depend(task, &slot.link, flow.writer, &handle);
    flow.members.push_back({&task, task.id});
  }

  /// Replaces the members of a group by one task that follows them all, so that the next group needs one edge per member.
  void close_group(Handle& handle);

  void begin_tracing() noexcept {
    trace_.begin();
    traces_ = watched_ = true;
  }
  void tell_edge(TaskId from, const Task& to, const Handle* data) {
    if (traces_) trace_.depend(from);
    if (observer_ != nullptr) observer_->edge(from, to, data);
  }
  void finish_tracing(const Task& task) {
    traces_ = trace_.end(task);
    watched_ = traces_ || observer_ != nullptr;
  }

  TaskPool& pool_;
  FlowHost& host_;
  GraphObserver* observer_ = nullptr;
  std::int32_t edges_ = 0;
  bool traces_ = false;   ///< the task that is entered is traced
  bool watched_ = false;  ///< it is, or there is an observer
  SubmissionTrace trace_;
};

}  // namespace tandem::runtime
