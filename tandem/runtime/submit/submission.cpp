// tandem/runtime/submit/submission.cpp: the rare ways to submit, and the runtime's own nodes.
#include "tandem/runtime/submit/submission.hpp"

#include "tandem/runtime/record/recorder.hpp"

namespace tandem::runtime {

Submission::Submission(Executor& executor, std::uint32_t registry, std::uint64_t window)
    : executor_(executor), registry_(registry), window_(window), flow_(pool_, *this) {
  origin_.kind = Origin::Kind::submitter;
  origin_.trace = &flow_.trace().stream;
}

/// The trace gets the task's queue before the task can be gone.
[[gnu::noinline]] void Submission::push_traced(Task& task) {
  ReadyQueues& queues = executor_.queues();
  const unsigned queue = queues.choose_for_submitted(task);
  flow_.finish_entering_pushed(task, queue);
  queues.put_submitted(&task, queue);
}

Task& Submission::begin_copy(Task& model) {
  thread_.check("submit");
  Task& task = take(*model.ops, model.access_count);
  task.codelet = model.codelet;
  task.kind = model.kind;
  task.restricted = model.restricted;
  task.chooses = model.chooses;
  task.priority = model.priority;
  task.where = model.where;
  for (unsigned i = 0; i < model.access_count; ++i)
    task.accesses()[i].set(model.accesses()[i].handle(), model.accesses()[i].mode());
  if (model.ops->copy_values != nullptr) model.ops->copy_values(model, task, true);
  if (model.extra != nullptr) extra_of(task).take_options(*model.extra);
  return task;
}

void Submission::abandon(Task& task) noexcept {
  if (task.ops->destroy_values != nullptr) task.ops->destroy_values(task);
  abandon_unfilled(task);
}

void Submission::abandon_unfilled(Task& task) noexcept {
  if (task.recorded) return recorder_->abandon(task);
  pool_.recycle(&task);
}

Task& Submission::take_recorded(const TaskOps& ops, unsigned access_count) {
  return recorder_->take(ops, access_count);
}

Task& Submission::begin_recorded_node(TaskKind kind, unsigned access_count) {
  Task& task = take_recorded(kNoValues, access_count);
  task.kind = kind;
  return task;
}

TaskRef Submission::record_event(Task& event, bool with_release) { return recorder_->enter_event(event, with_release); }

TaskRef Submission::record(Task& task, const TaskRef* predecessors, std::size_t count) {
  recorder_->check(task, predecessors, count);
  check(task);
  keep_iteration(task);
  return recorder_->enter(task, predecessors, count);
}

TaskRef Submission::submit_after(Task& task, const TaskRef* predecessors, std::size_t count) {
  if (recorder_ != nullptr) return record(task, predecessors, count);
  for (std::size_t i = 0; i < count; ++i)
    if (predecessors[i].is_recorded()) refuse_recorded_predecessor(task);
  check(task);
  enter(task);
  for (std::size_t i = 0; i < count; ++i) {
    flow_.depend(task, nullptr, predecessors[i], nullptr, true);
    // A predecessor that has ended no longer reports its failure. The log is read after the edge was tried, so none is
    // missed.
    FlowFailure* cause = executor_.failures().any() ? executor_.failures().cause_of(predecessors[i].id) : nullptr;
    if (cause == nullptr) continue;
    executor_.failures().note_cause(task.id, *cause);
    task.poisoned.store(true, std::memory_order_relaxed);
  }
  flow_.enter_accesses(task);
  const TaskRef ref{&task, task.id};
  leave(task);
  return ref;
}

Task& Submission::enter_beside(TaskKind kind, std::int32_t waits) {
  Task& task = begin_node(kind, 0);
  task.successors.reset();
  task.waits.store(waits, std::memory_order_relaxed);
  ++submitted_;
  return task;
}

void Submission::throttle() {
  if (recorder_ != nullptr) return;
  window_.pay_toll();
  if (window_.postponed()) return;
  window_.note_finished(executor_.finished());
  const bool is_crowded = window_.is_crowded() && this->is_crowded();
  if (!is_crowded && !window_.is_full(submitted_)) return;
  flush();
  trace().emit<trace::Type::submission_throttled>();
  struct Resumed {
    trace::Stream& trace;
    ~Resumed() { trace.emit<trace::Type::submission_resumed>(); }
  } resumed{trace()};
  if (is_crowded) wait_for_passing_data();
  if (!window_.is_full(submitted_)) return;
  waiter_->wait_until_ended(window_.resume_at(submitted_));
  window_.note_finished(executor_.finished());
}

/// Looks again, since tasks have ended.
bool Submission::is_crowded() noexcept {
  note_passing_data();
  return window_.is_crowded();
}

/// Dropped data is freed when its tasks have ended, so waiting makes room for further submissions.
void Submission::wait_for_passing_data() {
  struct Wanted {
    const Room& room;
    std::size_t most;
  } wanted{executor_.memory().room(), window_.resume_below()};
  const bool is_freed = waiter_->wait_while_tasks_end(
      [](void* context) {
        const auto& [room, most] = *static_cast<const Wanted*>(context);
        return room.passing_bytes() <= most;
      },
      &wanted);
  window_.end_crowded(!is_freed, wanted.room.passing_bytes());
  window_.note_finished(executor_.finished());
}

void Submission::settle() {
  while (Task* join = origin_.joins) {
    origin_.joins = join->next;
    executor_.end(*join, origin_);
  }
  flush();
}

void Submission::close_reductions() {
  while (!open_reductions_.empty()) {
    Handle& handle = open_reductions_.last();
    open_reductions_.remove(handle);
    flow_.close_reduction(handle);
  }
  settle();
}

Task* Submission::make_join() {
  Task& task = begin_node(TaskKind::join, 0);
  task.successors.reset();
  ++submitted_;
  return &task;
}

Task* Submission::make_combine(Handle& handle) {
  forget(handle);
  Task& task = take(combine_ops(), 1);
  task.kind = TaskKind::kernel;
  task.codelet = &combine_codelet();
  task.accesses()[0].set(&handle, AccessMode::read_write);
  task.successors.reset();
  ++submitted_;
  return &task;
}

}  // namespace tandem::runtime
