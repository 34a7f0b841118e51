// tandem/runtime/runtime_core.hpp: the runtime of one process: owns the parts, submits, waits. Without the types of the front
// end.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "tandem/base/driver.hpp"
#include "tandem/base/log.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/runtime/exec/executor.hpp"
#include "tandem/runtime/memory/memory.hpp"
#include "tandem/runtime/sched/policy.hpp"
#include "tandem/runtime/sched/ready_queues.hpp"
#include "tandem/runtime/task/flow.hpp"
#include "tandem/runtime/task/foreign_calls.hpp"
#include "tandem/runtime/task/pool.hpp"
#include "tandem/runtime/usage_error.hpp"
#include "tandem/runtime/worker/worker.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::runtime {

class Recorder;
class FlowChart;

struct CoreOptions {
  std::uint64_t window = 32'768;          ///< tasks submitted and not ended, at most
  std::int64_t watchdog_ns = 30'000'000'000;  ///< without progress for so long: say why; 0: never
  bool watchdog_throws = false;           ///< then wait() throws StuckError instead of waiting on
  bool statistics = false;
  bool timeline = false;
  std::string graphviz;                   ///< file for the graph of the flow; empty: none
  std::int64_t poll_max_ns = 1'000;
  std::int64_t poll_for_ns = 20'000;
  unsigned tasks_per_step = 256;
  std::int64_t begin_ahead_ns = 20'000;  ///< a flow that is cancelled may still begin what begins within about so long
  std::uint64_t seed = 1;
  Emulation emulation = {};               ///< empty: kernels run
};

/// What a runtime is made of in a world: real, test or virtual.
struct World {
  std::unique_ptr<base::Driver> driver;
  std::unique_ptr<Policy> policy;
  const clock::Clock* clock = nullptr;                ///< outlives the runtime
  base::Log* log = nullptr;                           ///< likewise
  std::vector<WorkerSpec> workers;                    ///< those of kind cpu first; worker 0 is the caller if `caller_works`
  std::vector<std::vector<unsigned>> distance;        ///< between CPU workers
  std::vector<std::pair<std::unique_ptr<MemoryNode>, std::unique_ptr<Copier>>> nodes;  ///< beyond main memory
  bool caller_works = true;
  /// On which NUMA node, counted from 0, memory lies, for the trace; empty: nobody knows.
  std::function<std::optional<std::size_t>(const void* memory, std::size_t bytes)> numa_node_of;
};

/// An access of the application, while it lasts.
struct ApplicationAccess {
  RuntimeCore* runtime = nullptr;
  Task* task = nullptr;
  Handle* handle = nullptr;
  std::atomic<bool> granted{false};
};

/// Runtime of one process.
///
/// Threads. The thread that constructs it is the submitting thread: it alone calls the members below, but for those that say
/// otherwise, and it works as worker 0 while it waits. From another thread or from inside a kernel they throw `UsageError`.
class RuntimeCore final : private FlowHost {
 public:
  RuntimeCore(World world, const CoreOptions& options);
  ~RuntimeCore() override;
  /// What the destructor begins with: all tasks end, data goes home, and nothing runs any more.
  void shut_down();
  RuntimeCore(const RuntimeCore&) = delete;
  RuntimeCore& operator=(const RuntimeCore&) = delete;

  // --- data
  /// `memory` null: Tandem allocates. `ld` in elements.
  Handle* add_data(std::string name, const Shape& shape, void* memory, std::size_t ld, const std::type_info& type,
                   const SourceLine& where);
  /// Waits for the tasks that use it, brings the value home, and forgets the data. Never throws for failed kernels.
  void unregister(Handle& handle);
  /// Whether it was registered here, and still is. By a number instead of the pointer, since the line that each submission
  /// looks at has no room for more.
  bool owns(const Handle& handle) const noexcept {
    return handle.runtime_number.load(std::memory_order_relaxed) == number_;
  }
  /// An owner has gone: the last one lets the data go. Any thread, while the runtime lives or once it is gone.
  static void drop_owner(Handle* handle) noexcept;

  // --- tasks
  /// A task to be filled: accesses set, values constructed; then `submit` or `abandon`.
  Task& begin(const std::shared_ptr<CodeletCore>& codelet, const TaskOps& ops, unsigned access_count) {
    if (__builtin_expect(!may_submit(), 0)) refuse_thread("submit");
    adopt(codelet);
    Task& task = recorder_ == nullptr ? take(ops, access_count) : take_recorded(ops, access_count);
    task.codelet = codelet.get();
    task.kind = TaskKind::kernel;
    task.restricted = !codelet->plain;
    return task;
  }
  /// As `begin`, filled as `model`, a task that is kept and not submitted.
  Task& begin_copy(Task& model);
  TaskRef submit(Task& task) {
    check(task);
    if (__builtin_expect(recorder_ != nullptr, 0)) return record_task(task);
    enter(task);
    flow_.enter_accesses(task);
    const TaskRef ref{&task, task.id};
    leave(task);
    return ref;
  }
  /// As `submit`, after `predecessors` too.
  TaskRef submit_after(Task& task, const TaskRef* predecessors, std::size_t count);
  /// As `submit`, of a task that moves data for others (`TaskOps::serves`): does not wait for room in the window.
  TaskRef submit_serving(Task& task);
  void abandon(Task& task) noexcept;
  TaskExtra& extra_of(Task& task) { return pool_.extra_of(task); }

  /// A node of the graph that somebody else completes. `on_ready` runs, on any thread, when its predecessors have ended, and must
  /// not block. Then `complete` once, from any thread. With `released`, a second node is returned that the next writers of the
  /// written data wait for beside it, to be completed too: the event's *released*, where the first is its *readable*.
  Task& begin_event(std::string name, unsigned access_count);
  struct EventTasks {
    TaskRef readable;
    TaskRef released;
  };
  /// `event` is filled before the event can start, since it may start before this returns. `after`: a node that comes first,
  /// whatever data it uses.
  void submit_event(Task& task, bool with_release, EventTasks& event, const TaskRef& after = {});
  void complete(const TaskRef& event, std::exception_ptr failure = nullptr);  ///< any thread
  /// As `complete`, for an event whose data do not exist because of a failure elsewhere; counts as no task. Any thread.
  void complete_failed(const TaskRef& event, FlowFailure& failure);
  /// As `complete`, for an event that has read only, or found nothing to read; counts as no task. Any thread.
  void complete_read(const TaskRef& event);
  /// For `on_ready` of an event: its data do not exist, so there is nothing to start; it is to be completed at once.
  bool is_cancelled(Task& event) { return executor_.why_cancelled(event) != nullptr; }
  /// For `on_ready` of an event that counts as a task. False: the ranks agree first where a cancelled flow ends, and it is called
  /// again. Then `is_behind_end` tells whether the event is to start, or to `pass_over`.
  bool may_begin(Task& event) {
    return executor_.may_begin(event) || executor_.ask_to_begin(event, world_.clock->now_ns()) != Cutoff::Answer::hold;
  }
  bool is_behind_end(const Task& event) const noexcept { return executor_.is_behind_end(event.id); }
  /// As `complete`, for an event that did not start. Any thread.
  void pass_over(const TaskRef& event);

  // --- waiting
  void wait_all();
  /// The two halves of `wait_all`: waits until everything has ended; then says what is to be thrown, which counts as told.
  void drain();
  FailureLog::Report take_failures();
  [[noreturn]] void throw_failure(const FailureLog::Report& report);
  void wait(const TaskRef& task);
  void wait(Handle& handle);
  std::unique_ptr<ApplicationAccess> acquire(Handle& handle, AccessMode mode, const SourceLine& where);
  void release(ApplicationAccess& access) noexcept;

  // --- the end of a flow
  /// What has not begun of the flow is not needed: tasks behind one position do not run, and what is submitted there is nothing.
  /// Any thread, kernels included. Of one rank: `dist::Flow` agrees on the position of several.
  void cancel() { executor_.decide_end(executor_.freeze_end()); }
  /// What is submitted now would be behind the end of a cancelled flow. False while a graph is recorded.
  bool is_over() const noexcept {
    return __builtin_expect(executor_.is_behind_end(last_id_ + 1), 0) && recorder_ == nullptr;
  }
  /// Where the flow was cancelled that the last `wait_all` has ended; nothing if it was not.
  std::optional<TaskId> cancelled_at() const noexcept { return cancelled_at_; }

  // --- recorded graphs
  void start_recording(Recorder* recorder);
  void stop_recording() noexcept;

  // --- what is known
  Executor& executor() noexcept { return executor_; }
  Memory& memory() noexcept { return memory_; }
  Flow& flow() noexcept { return flow_; }
  TaskPool& pool() noexcept { return pool_; }
  base::Log& log() noexcept { return *world_.log; }
  const World& world() const noexcept { return world_; }
  base::Driver& driver() noexcept { return *world_.driver; }
  const CoreOptions& options() const noexcept { return options_; }
  std::uint64_t submitted() const noexcept { return submitted_; }
  TaskId last_id() const noexcept { return last_id_; }
  StatisticsReport statistics();
  std::vector<TimelineEvent> timeline() const;
  /// Why nothing goes on: each waiting task and what it waits for. While everybody rests.
  std::string explain_stuck();

  // --- the trace
  /// From now on everything is told to `session`, which outlives the runtime. Once. By the submitting thread.
  void trace_to(trace::Session& session);
  trace::Session* trace_session() noexcept { return trace_; }
  /// The submitter's stream: also for events of the layers above.
  trace::Stream& submitter_trace() noexcept { return flow_.trace().stream; }
  /// Data are described by the layer above, which knows their owners.
  void leave_description_of_data(std::function<std::uint32_t(const Handle&)> owner_of) { owner_of_ = std::move(owner_of); }
  void describe_data(const Handle& handle, std::uint32_t owner);
  /// Describes `tasks`, which are replayed under the ids from `base` on; `graph` 0: they have no number yet. Returns it.
  std::uint32_t trace_replay(std::uint32_t graph, TaskId base, const std::vector<Task*>& tasks);

  // --- for the layer above
  /// What idle workers look after: set by the submitting thread, and taken away before it is destroyed.
  base::Attendance& attendance() noexcept { return attendance_; }
  /// From now on workers tell, as kernels begin, when they are expected to end (`TaskExtra::on_expected`): by the mean duration
  /// of their codelet on that worker so far, or by the emulation. Any thread. Costs two looks at the clock for each kernel.
  void tell_expected() noexcept { expects_.store(true, std::memory_order_relaxed); }
  /// `event`, which has not ended and will not during the call, ends in about so many ns. If it is the last thing that an urgent
  /// task waits for, a worker may wait for that one too, instead of beginning something long (`Policy::waits`). The number is for
  /// `expect_no_more`, which is due when the event has ended; 0: no task waits for it alone. Any thread.
  std::uint64_t expect_end(const TaskRef& event, std::int64_t in_ns);
  void expect_no_more(std::uint64_t expected) { executor_.expected().remove(expected); }
  /// The next task's id is `id` or more: so that several runtimes number the tasks of one flow alike.
  void raise_id(TaskId id) noexcept { last_id_ = std::max(last_id_, id - 1); }
  /// Who is told of the end of data, by the submitting thread: `abandoned` when the program has dropped the last reference, at
  /// that position of the flow; `let_go` later, when nobody uses it any more.
  struct EndOfData {
    std::function<void(Handle&)> abandoned;
    std::function<void(Handle&)> let_go;
  };
  void on_end_of_data(EndOfData tell) { end_of_data_ = std::move(tell); }
  /// Submitting does not wait for room in the window until `resume_throttle`: what makes room is to come first. Then the next
  /// task does.
  void postpone_throttle() noexcept { throttle_postponed_ = true; }
  void resume_throttle() noexcept { throttle_postponed_ = false; }
  /// Works, or sleeps, until `done(context)`, which whoever makes it true follows by waking `executor().caller()`.
  void work_until(bool (*done)(void*), void* context) { run_until(done, context); }

  // --- for recorded graphs
  TaskId reserve_ids(std::uint64_t count) noexcept {
    const TaskId first = last_id_ + 1;
    last_id_ += count;
    return first;
  }
  /// Memory that lives as long as the runtime, for a task to which references may outlive its graph.
  void* keep_block(std::size_t bytes);
  /// No data refers any more to the tasks between two addresses, all of which have ended.
  void forget_tasks(const void* first, const void* last) noexcept;
  /// As `wait`, for destructors.
  void wait_quietly(const TaskRef& task) noexcept;
  static const TaskOps& combine_ops() noexcept;
  const std::shared_ptr<CodeletCore>& combine_codelet();
  void count_submitted(std::uint64_t count) { submitted_ += count; }
  void throttle_if_needed() {
    if (__builtin_expect(submitted_ - finished_seen_ >= options_.window + held_, 0)) throttle();
  }
  Origin& submitter_origin() noexcept { return submitter_origin_; }
  /// Ends joins that became ready while something was entered, and counts.
  void settle_submission();
  void adopt(const std::shared_ptr<CodeletCore>& codelet) {
    const auto slot = (reinterpret_cast<std::uintptr_t>(codelet.get()) >> 4) % adopted_.size();
    if (__builtin_expect(adopted_[slot] != codelet.get(), 0)) adopt_slowly(codelet, slot);
  }
  void note_open_reduction(Handle& handle) { open_reductions_.push_back(&handle); }
  void check_thread(const char* action) {
    if (__builtin_expect(!may_submit(), 0)) refuse_thread(action);
  }
  base::RunEnd run_until(bool (*done)(void*), void* context);
  void check(Task& task) {
    for (unsigned i = 0; i < task.access_count; ++i) {
      const AccessSlot& slot = task.accesses()[i];
      if (__builtin_expect(slot.handle() == nullptr, 0)) check_slowly(task, i);
      const Handle& handle = *slot.handle();
      if (__builtin_expect(!owns(handle) || (sees_value(slot.mode()) && !handle.flow.has_value) ||
                               slot.mode() == AccessMode::reduce,
                           0))
        check_slowly(task, i);
      for (unsigned j = 0; j < i; ++j)
        if (__builtin_expect(task.accesses()[j].handle() == &handle, 0)) merge_accesses(task, j, i);
    }
    if (__builtin_expect(task.restricted, 0)) check_runnable(task);
    for (unsigned i = 0; i < task.access_count; ++i)
      if (task.accesses()[i].mode() != AccessMode::read) note_mode(task, task.accesses()[i]);
  }

 private:
  friend class Watchdog;

  /// Rests for ever: stands for a caller that does not work.
  class Idler final : public base::Steppable {
   public:
    std::int64_t step(std::int64_t) override { return base::kNever; }
  };

  // FlowHost
  Task* make_join() override;
  Task* make_combine(Handle& handle) override;
  void entered_ready(Task& task) override;

  Task& take(const TaskOps& ops, unsigned access_count) {
    Task* task = pool_.take(Task::value_offset(access_count, ops.value_alignment) + ops.value_bytes);
    task->id = ++last_id_;
    task->ops = &ops;
    task->access_count = static_cast<std::uint8_t>(access_count);
    task->priority = 0;
    task->special = false;
    task->restricted = false;
    task->recorded = false;
    task->poisoned.store(false, std::memory_order_relaxed);
    task->progress = 0;
    task->where = {};
    task->codelet = nullptr;
    return *task;
  }
  Task& take_recorded(const TaskOps& ops, unsigned access_count);
  TaskRef record_task(Task& task);
  void enter(Task& task) {
    task.successors.reset();
    ++submitted_;
    flow_.begin_entering(task);
  }
  void leave(Task& task) {
    leave_unthrottled(task);
    // What the application or something outside ends must not be waited for here: it may end only after this call.
    if (task.kind == TaskKind::kernel) throttle_if_needed();
  }
  void leave_unthrottled(Task& task) {
    if (flow_.finish_entering(task)) executor_.dispatch(task, submitter_origin_);
    if (__builtin_expect(submitter_origin_.joins != nullptr, 0)) settle_submission();
  }
  static void note_mode(Task& task, const AccessSlot& slot) noexcept {
    if (makes_value(slot.mode())) slot.handle()->flow.has_value = true;
    if (slot.mode() == AccessMode::commute || slot.mode() == AccessMode::reduce || slot.mode() == AccessMode::scratch)
      task.special = true;
    // Given back by the task's end; a recorded graph has a reference of its own.
    if (slot.mode() == AccessMode::scratch && !task.recorded) slot.handle()->references.fetch_add(1, std::memory_order_relaxed);
  }
  static std::uint32_t next_number() noexcept;
  void tell_numa_node(const Handle& handle) noexcept;
  void check_slowly(Task& task, unsigned access);
  void merge_accesses(Task& task, unsigned first, unsigned second);
  void check_runnable(const Task& task);
  [[noreturn]] void refuse_thread(const char* action);
  [[noreturn]] void refuse_data(const char* action, const Handle& handle, const SourceLine& where);
  bool may_submit() const noexcept { return submitter_.load(std::memory_order_relaxed) == &thread_token_; }
  void adopt_slowly(const std::shared_ptr<CodeletCore>& codelet, std::size_t slot);
  void throttle();
  void wait_granted(ApplicationAccess& access);
  ApplicationAccess& begin_access(ApplicationAccess& access, Handle* handle, AccessMode mode, const SourceLine& where,
                                  const TaskRef* after);
  void close_reductions();
  void end_flow();
  bool nobody_uses(const Handle& handle) const noexcept;
  void free_orphans(bool all);
  void let_go(Handle* handle) noexcept;
  void log_statistics();

  World world_;
  CoreOptions options_;
  TaskPool pool_;
  Flow flow_;
  Executor executor_;
  Memory memory_;
  std::unique_ptr<ReadyQueues> queues_;
  base::Attendance attendance_;
  std::atomic<bool> expects_{false};
  std::vector<std::unique_ptr<Worker>> workers_;
  Idler idler_;
  Recorder* recorder_ = nullptr;
  std::unique_ptr<FlowChart> chart_;

  Origin submitter_origin_;
  /// Token of the submitting thread; null while it runs kernels. Relaxed: others only learn that it is not theirs.
  std::atomic<const char*> submitter_{nullptr};
  const char* owner_ = nullptr;
  const std::uint32_t number_ = next_number();  ///< of this runtime in the process, from 1
  bool is_shut_down_ = false;
  TaskId last_id_ = 0;
  std::optional<TaskId> cancelled_at_;
  std::uint64_t submitted_ = 0;
  std::uint64_t finished_seen_ = 0;
  bool throttle_postponed_ = false;
  std::uint64_t held_ = 0;  ///< accesses that the application has acquired: the window does not count them
  std::array<const CodeletCore*, 64> adopted_{};
  std::vector<std::shared_ptr<CodeletCore>> codelets_;
  std::unordered_set<Handle*> handles_;
  std::vector<Handle*> open_reductions_;
  std::vector<Handle*> orphans_;     ///< without owners, to be let go when idle
  std::unordered_set<Handle*> unwritten_;  ///< that had no value when the present recording began
  ForeignCalls completions_;
  std::mutex foreign_mutex_;
  std::vector<Handle*> foreign_orphans_;  ///< whose last owner went on another thread; under the mutex
  std::shared_ptr<CodeletCore> combine_;
  EndOfData end_of_data_;
  std::vector<std::unique_ptr<std::byte, base::FreeLarge>> kept_;
  trace::Session* trace_ = nullptr;
  std::function<std::uint32_t(const Handle&)> owner_of_;  ///< empty: nobody owns anything
  std::uint32_t data_count_ = 0;
  std::uint32_t traced_graphs_ = 0;

  static constinit thread_local const char thread_token_;
};

}  // namespace tandem::runtime
