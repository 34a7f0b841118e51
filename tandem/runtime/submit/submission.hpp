// tandem/runtime/submit/submission.hpp: takes tasks from the application, checks them and enters them into the flow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tandem/base/assert.hpp"
#include "tandem/runtime/exec/executor.hpp"
#include "tandem/runtime/submit/adopted_codelets.hpp"
#include "tandem/runtime/submit/open_reductions.hpp"
#include "tandem/runtime/submit/submitting_thread.hpp"
#include "tandem/runtime/submit/window.hpp"
#include "tandem/runtime/task/flow.hpp"
#include "tandem/runtime/exec/internal_tasks.hpp"
#include "tandem/runtime/task/pool.hpp"

namespace tandem::runtime {

class Recorder;

/// Waits until tasks have ended, for submission when its window is full.
class EndWaiter {
 public:
  virtual ~EndWaiter() = default;
  /// Returns once `count` tasks of all that were submitted have ended.
  virtual void wait_until_ended(std::uint64_t count) = 0;
  /// Returns true once `done(context)`; false when nothing can make it so any more: no kernel runs, and for a while no
  /// task has ended.
  virtual bool wait_while_tasks_end(bool (*done)(void*), void* context) = 0;
};

/// The submission of tasks: numbers them, checks their accesses, infers their dependencies (`Flow`), and starts those
/// that are ready; or hands them to a `Recorder` while a graph is recorded.
///
/// Threads: all functions belong to the submitting thread, which `begin` checks. Workers see of it only the tasks.
///
/// A task's way: `make_room` waits if the window is full; `begin` takes it from the pool and numbers it; the caller
/// sets accesses and values; `submit` checks it (UsageError, after which the task is gone), and enters it. After
/// `begin` exactly one of `submit`, `submit_after`, `abandon` and `abandon_unfilled` follows. Errors leave the flow as
/// it was: all that throws comes before the first step that changes it.
class Submission final : private FlowHost {
 public:
  /// `registry`: the number of the registry whose data tasks may use (`DataRegistry::number`).
  Submission(Executor& executor, std::uint32_t registry, std::uint64_t window);
  /// Sets the waiter before the first task.
  void connect(EndWaiter& waiter) noexcept {
    waiter_ = &waiter;
    looks_closer_ = looks_closer_ || executor_.order() != nullptr;
  }

  // --- tasks
  /// Waits if the window is full. Called before a task of the program is begun, so that the layer above has no trace of
  /// it, either. Throws the exceptions of waits.
  void make_room() {
    if (__builtin_expect(window_.looks_full(submitted_), 0)) throttle();
  }
  Task& begin(const std::shared_ptr<CodeletCore>& codelet, const TaskOps& ops, unsigned access_count) {
    thread_.check("submit");
    return make(codelet, ops, access_count);
  }
  /// Makes room, and begins a task. Null: `is_over`, and the task has no effect.
  Task* begin_unless_over(const std::shared_ptr<CodeletCore>& codelet, const TaskOps& ops, unsigned access_count) {
    thread_.check("submit");
    make_room();
    return is_over() ? nullptr : &make(codelet, ops, access_count);
  }
  /// As `begin`, with the content of `model`, a task that is kept and not submitted.
  Task& begin_copy(Task& model);
  TaskRef submit(Task& task) {
    if (__builtin_expect(recorder_ != nullptr, 0)) return record(task, nullptr, 0);
    check(task);
    enter(task);
    flow_.enter_accesses(task);
    TANDEM_DEBUG_ASSERT(is_last_user(task));
    const TaskRef ref{&task, task.id};
    leave(task);
    return ref;
  }
  /// As `submit`; the task also runs after `predecessors`, and is cancelled if one of them fails.
  TaskRef submit_after(Task& task, const TaskRef* predecessors, std::size_t count);
  void abandon(Task& task) noexcept;
  /// Abandons a task before its values were made.
  void abandon_unfilled(Task& task) noexcept;
  TaskExtra& extra_of(Task& task) { return pool_.extra_of(task); }
  /// Number of codelets that are kept for tasks submitted so far.
  std::size_t codelet_count() const noexcept { return codelets_.size(); }

  /// Checks the pool and the counts.
  bool check_invariants() const noexcept { return pool_.check_invariants() && executor_.finished() <= submitted_; }
  /// Whether each access of `task`, which was entered last, is the last use of its data.
  bool is_last_user(const Task& task) const noexcept;

  // --- positions
  TaskId last_id() const noexcept { return last_id_; }
  /// Number of tasks submitted so far, the runtime's own nodes included.
  std::uint64_t submitted() const noexcept { return submitted_; }
  /// Makes the next task's id `id` or more, so that several runtimes number the tasks of one flow alike.
  void raise_id(TaskId id) noexcept { last_id_ = std::max(last_id_, id - 1); }
  /// Whether a task submitted now would be behind the end of a cancelled flow. False while a graph is recorded.
  bool is_over() const noexcept {
    return __builtin_expect(executor_.is_behind_end(last_id_ + 1), 0) && recorder_ == nullptr;
  }

  // --- parts
  /// Some memory has a budget: tasks that fit into none are refused. `at_once`: a task that every CPU worker can run
  /// gets its memory when it is ready. Called before any task.
  void expect_budgets(bool at_once) noexcept {
    has_budgets_ = looks_closer_ = true;
    budgeted_at_once_ = at_once;
    window_.set_budget(executor_.memory().room().processor_budget());
  }
  /// A policy gives tasks of the program to workers: all are restricted except those of `Executor::is_everyone`. Called
  /// before any task.
  void restrict_all() noexcept { restricts_all_ = looks_closer_ = true; }
  /// Lets tasks have their `flow_depth`, which the policy uses. After `restrict_all`.
  void count_depth() noexcept { counts_depth_ = true; }
  bool counts_depth() const noexcept { return counts_depth_; }
  SubmittingThread& thread() noexcept { return thread_; }
  Window& window() noexcept { return window_; }
  /// Notes that the program has dropped data of Tandem's that submitted tasks use; the next submission may wait.
  void note_passing_data() noexcept { window_.note_passing(executor_.memory().room().passing_bytes()); }
  Flow& flow() noexcept { return flow_; }
  TaskPool& pool() noexcept { return pool_; }
  /// The submitter's stream of trace events; layers above write theirs there, too.
  trace::Stream& trace() noexcept { return flow_.trace().stream; }
  /// Keeps the iteration in which a recorded task was recorded.
  void keep_iteration(Task& task) {
    if (flow_.trace().iteration != TaskFacts::kNoIteration) [[unlikely]]
      extra_of(task).facts.iteration = flow_.trace().iteration;
  }
  /// Whether a trace records tasks that are submitted now.
  bool is_traced() noexcept { return flow_.trace().stream.any_on<trace::Type::task_submitted>(); }

  // --- steps of `submit`, for nodes with dependencies of their own: take, set accesses, check, enter, `flow()`, leave
  Task& begin_node(TaskKind kind, unsigned access_count) {
    Task& task = take(kNoValues, access_count);
    task.kind = kind;
    return task;
  }
  void enter(Task& task) {
    task.successors.reset();
    ++submitted_;
    flow_.begin_entering(task);
  }
  void leave(Task& task) {
    if (__builtin_expect(flow_.takes_pushed(), 0) && goes_to_queues(task)) push_traced(task);
    else if (flow_.finish_entering(task)) executor_.dispatch(task, origin_);
    if (__builtin_expect(origin_.joins != nullptr, 0)) settle();
  }
  void check(Task& task) {
    if (__builtin_expect(task.access_count > kFewAccesses, 0)) check_many(task);
    else check_accesses(task, [&](unsigned i) {
      for (unsigned j = 0; j < i; ++j)
        if (__builtin_expect(task.accesses()[j].handle() == task.accesses()[i].handle(), 0)) merge_accesses(task, j, i);
    });
    if (__builtin_expect(task.restricted, 0)) check_runnable(task);
    if (__builtin_expect(looks_closer_, 0)) look_closer(task);
    for (unsigned i = 0; i < task.access_count; ++i)
      if (task.accesses()[i].mode() != AccessMode::read) note_mode(task, task.accesses()[i]);
  }
  /// Enters a node beside another one; it waits for `waits` completions.
  Task& enter_beside(TaskKind kind, std::int32_t waits);

  // --- replays of recorded graphs
  /// Numbers and counts `count` tasks of a replay. Returns the first id.
  TaskId begin_replay(std::uint64_t count) noexcept {
    const TaskId first = last_id_ + 1;
    last_id_ += count;
    submitted_ += count;
    return first;
  }
  void make_ready(Task& task) { executor_.make_ready(task, origin_); }
  /// Ends the entry of a replay: all roots are ready.
  void end_replay() { settle(); }

  // --- recording
  Task& begin_recorded_node(TaskKind kind, unsigned access_count);
  TaskRef record_event(Task& event, bool with_release);
  Recorder* recorder() const noexcept { return recorder_; }
  /// Sends tasks to `recorder` from now on; null: into the flow again.
  void record_to(Recorder* recorder) noexcept {
    recorder_ = recorder;
    looks_closer_ = has_budgets_ || restricts_all_ || executor_.order() != nullptr || recorder != nullptr;
  }
  /// While it lives, nothing is recorded: tasks submitted then concern the tasks before the recording.
  class Unrecorded {
   public:
    explicit Unrecorded(Submission& submission) noexcept
        : submission_(submission), recorder_(std::exchange(submission.recorder_, nullptr)) {}
    ~Unrecorded() { submission_.recorder_ = recorder_; }
    Unrecorded(const Unrecorded&) = delete;
    Unrecorded& operator=(const Unrecorded&) = delete;

   private:
    Submission& submission_;
    Recorder* const recorder_;
  };

  // --- for waits and for the end of data
  /// Submits the tasks that combine open reductions, and ends what has become ready meanwhile.
  void close_reductions();
  void close_reduction(Handle& handle) { flow_.close_reduction(handle); }
  /// Counts and hands back the tasks that this thread has ended.
  void flush() {
    flow_.trace().look_at_clock();
    executor_.flush(origin_);
  }
  /// Keeps `codelet` as long as this, so that what is known of it may be kept. `begin` calls it, too.
  void adopt(const std::shared_ptr<CodeletCore>& codelet) { codelets_.adopt(codelet); }
  /// Notes that no task uses `handle` any more.
  void forget(Handle& handle) noexcept { open_reductions_.remove(handle); }

 private:
  // FlowHost
  Task* make_join() override;
  Task* make_combine(Handle& handle) override;
  void entered_ready(Task& task) override { executor_.make_ready(task, origin_); }

  bool is_registered(const Handle& handle) const noexcept {
    return handle.registry_number.load(std::memory_order_relaxed) == registry_;
  }
  Task& make(const std::shared_ptr<CodeletCore>& codelet, const TaskOps& ops, unsigned access_count) {
    codelets_.adopt(codelet);
    Task& task = recorder_ == nullptr ? take(ops, access_count) : take_recorded(ops, access_count);
    task.codelet = codelet.get();
    task.kind = TaskKind::kernel;
    if (!codelet->plain) [[unlikely]] {
      task.restricted = true;
      task.chooses = codelet->has_choice;
    }
    return task;
  }
  Task& take(const TaskOps& ops, unsigned access_count) {
    Task* task = pool_.take(Task::value_offset(access_count, ops.value_alignment) + ops.value_bytes);
    task->id = ++last_id_;
    task->ops = &ops;
    task->access_count = static_cast<std::uint16_t>(access_count);
    task->priority = 0;
    task->special = false;
    task->restricted = false;
    task->chooses = false;
    task->recorded = false;
    task->budgeted = false;
    task->poisoned.store(false, std::memory_order_relaxed);
    task->progress = 0;
    task->where = {};
    task->codelet = nullptr;
    return *task;
  }
  Task& take_recorded(const TaskOps& ops, unsigned access_count);
  TaskRef record(Task& task, const TaskRef* predecessors, std::size_t count);
  void push_traced(Task& task);
  void throttle();
  bool is_crowded() noexcept;
  void wait_for_passing_data();
  /// Ends joins that became ready during an entry, and counts.
  void settle();
  static void note_mode(Task& task, const AccessSlot& slot) noexcept {
    if (makes_value(slot.mode())) slot.handle()->flow.has_value = true;
    if (slot.mode() == AccessMode::commute || slot.mode() == AccessMode::reduce || slot.mode() == AccessMode::scratch)
      task.special = true;
    // The end of the task drops this reference; a recorded graph has one of its own.
    if (slot.mode() == AccessMode::scratch && !task.recorded)
      slot.handle()->references.fetch_add(1, std::memory_order_relaxed);
  }
  /// Checks each access, and calls `then(index)`.
  template <class Then>
  [[gnu::always_inline]] void check_accesses(Task& task, const Then& then) {
    for (unsigned i = 0; i < task.access_count; ++i) {
      const AccessSlot& slot = task.accesses()[i];
      if (__builtin_expect(slot.handle() == nullptr, 0)) check_slowly(task, i);
      const Handle& handle = *slot.handle();
      if (__builtin_expect(!is_registered(handle) || (sees_value(slot.mode()) && !handle.flow.has_value) ||
                               slot.mode() == AccessMode::reduce || handle.flow.asks != 0,
                           0))
        check_slowly(task, i);
      then(i);
    }
  }
  /// The most accesses that are compared in pairs.
  static constexpr unsigned kFewAccesses = 32;
  // Rare paths (submission_checks.cpp); they throw UsageError for a mistake.
  void check_many(Task& task);
  void check_slowly(Task& task, unsigned access);
  void merge_accesses(Task& task, unsigned first, unsigned second);
  void check_runnable(Task& task);
  void look_closer(Task& task);
  void check_fits(Task& task);
  void note_depth(Task& task);
  [[noreturn]] void refuse_recorded_predecessor(Task& task);

  Executor& executor_;
  const std::uint32_t registry_;
  EndWaiter* waiter_ = nullptr;
  Recorder* recorder_ = nullptr;
  bool looks_closer_ = false;  ///< true if one of the next two members, an order or a recorder is set
  bool has_budgets_ = false;
  bool restricts_all_ = false;
  bool budgeted_at_once_ = false;
  bool counts_depth_ = false;
  TaskId last_id_ = 0;
  std::uint64_t submitted_ = 0;
  TaskPool pool_;
  SubmittingThread thread_;
  Window window_;
  Flow flow_;
  Origin origin_;
  AdoptedCodelets codelets_;
  OpenReductions open_reductions_;
};

}  // namespace tandem::runtime
