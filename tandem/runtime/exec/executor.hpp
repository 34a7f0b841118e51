// tandem/runtime/exec/executor.hpp: what happens when a task becomes ready and when it ends.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/runtime/exec/cutoff.hpp"
#include "tandem/runtime/exec/failure.hpp"
#include "tandem/runtime/exec/message_watch.hpp"
#include "tandem/runtime/memory/memory.hpp"
#include "tandem/runtime/sched/contention/memory_gate.hpp"
#include "tandem/runtime/sched/queues/ready_queues.hpp"
#include "tandem/runtime/task/codelet_core.hpp"
#include "tandem/runtime/task/pool.hpp"
#include "tandem/runtime/task/task.hpp"
#include "tandem/runtime/task/task_number.hpp"
#include "tandem/runtime/exec/worker_spec.hpp"
#include "tandem/trace/stream.hpp"

namespace tandem::runtime {

class Placer;
class RecordedOrder;

/// A thread that makes tasks ready or ends them. On the stack of that thread, or a worker's own.
struct Origin {
  enum class Kind : std::uint8_t { submitter, worker, outside };
  Kind kind = Kind::outside;
  unsigned worker = 0;
  Task* keep = nullptr;       ///< the most urgent task that a worker has released, to run next if the policy agrees
  bool keep_told = false;     ///< the trace has it that `keep` is ready; else the thread that takes it traces that
  Task* joins = nullptr;      ///< tasks without a kernel, ended in turn instead of recursively
  Task* finished = nullptr;   ///< ended tasks that were not handed back yet
  Task* finished_last = nullptr;
  std::uint32_t unreported = 0;  ///< ended tasks that were not counted yet
  bool gathers = false;          ///< a task ends: workers are chosen once all its successors have been offered
  bool has_offered = false;      ///< the ending task has offered some successors
  trace::Stream* trace = nullptr;  ///< null: the stream of all threads that have none
};

/// Whether `task` goes into a queue at once when it is ready.
inline bool goes_to_queues(const Task& task) noexcept {
  return task.kind == TaskKind::kernel && !task.special && !task.restricted && !task.budgeted;
}

/// The part of the runtime that runs on every thread: dispatches ready tasks, ends tasks and releases their successors,
/// counts.
///
/// Threads. All functions may be called from any thread, each with an `Origin` of that thread's own. Counting: an
/// origin gathers ended tasks and reports them in batches (`flush`); a worker flushes before it rests. `finished()`
/// reaches the number of submitted tasks once all have ended and all origins have flushed. The submitting thread may
/// ask to be woken at a count (`wake_at`).
class Executor final : public StagingListener {
 public:
  explicit Executor(const std::vector<WorkerSpec>& workers);

  /// Connects the other parts, which outlive the last task. Called before the first task. `placer` null: the policy
  /// does not place. `order` null: no recorded run is followed; else all kernels are `Task::special`.
  void connect(TaskPool* pool, ReadyQueues* queues, Placer* placer, RecordedOrder* order, Memory* memory,
               base::Waker* caller) {
    pool_ = pool;
    queues_ = queues;
    placer_ = placer;
    order_ = order;
    memory_ = memory;
    caller_ = caller;
  }

  /// All predecessors of `task` have ended.
  void make_ready(Task& task, Origin& origin) {
    if (origin.kind == Origin::Kind::worker && goes_to_queues(task)) [[likely]]
      return keep_or_queue(task, origin, false);
    trace_ready(task, origin);
    dispatch(task, origin);
  }
  /// Sends a ready `task` on: a kernel to a queue or the placer, a join to `origin`, an event to its `on_ready`.
  void dispatch(Task& task, Origin& origin);

  /// Ends `task`: tells its successors, and ends the joins that follow.
  void end(Task& task, Origin& origin) {
    if (placer_ != nullptr) [[unlikely]] return end_and_place(task, origin);
    end_with_joins(task, origin);
  }

  /// Hands back and counts the ended tasks of `origin`.
  void flush(Origin& origin);

  /// Ends `task` (an event or an application's access) from any thread that is not a worker in a kernel.
  void complete(Task& task);

  void staged(Task& task) override;
  void staging_failed(Task& task, const std::exception_ptr& exception) override;
  void memory_is_blocked() override { caller_->wake(); }

  std::uint64_t finished() const noexcept { return finished_.load(std::memory_order_seq_cst); }
  /// Wakes the caller once `finished()` is at least `count`. Set before the caller reads `finished()` and rests.
  void wake_at(std::uint64_t count) noexcept { wake_at_.store(count, std::memory_order_seq_cst); }
  void set_batch(std::uint32_t batch) noexcept { batch_ = batch; }
  /// Sets the trace for events of threads that have no stream. Before anything is ready; outlives this.
  void set_trace(trace::Session* session) noexcept { trace_.store(session, std::memory_order_release); }

  FailureLog& failures() noexcept { return failures_; }
  MemoryGate& memory_gate() noexcept { return memory_gate_; }
  /// What the network does. Any thread.
  MessageWatch& messages() noexcept { return messages_; }
  /// A long message has begun or ended, and `freed`, linked by `Task::next`, waited for that at the gate: these and
  /// others get workers. Any thread.
  void serve_beside_messages(Task* freed);
  Memory& memory() noexcept { return *memory_; }
  ReadyQueues& queues() noexcept { return *queues_; }
  /// Null: `queues()` decides where tasks go.
  Placer* placer() noexcept { return placer_; }
  const RecordedOrder* order() const noexcept { return order_; }
  base::Waker& caller() noexcept { return *caller_; }
  const std::vector<WorkerSpec>& workers() const noexcept { return workers_; }
  /// Checks the queues and the loads of workers. By the submitting thread.
  bool check_invariants() const;

  /// The workers that have an implementation of the codelet and satisfy its predicate; null: none. The predicate is
  /// called once for each worker; its exceptions leave this. By the submitting thread. The codelet outlives this.
  WorkerGroup* group_of(const CodeletCore& codelet);
  /// The memory in which all workers that run `codelet` work; 0: several, or main memory.
  NodeIndex only_memory_of(const CodeletCore& codelet);
  /// Whether the group is all workers that share tasks, and no others; with a placer, only if they work in one memory.
  bool is_everyone(const WorkerGroup& group) const noexcept;

  // --- where a policy places tasks

  /// `worker` looks for a task: a policy that keeps tasks together gives it one, if there is one for it. By that
  /// worker.
  void feed(unsigned worker, Origin& origin);
  /// The caller waits, and works from now on. By its thread.
  void caller_arrives() noexcept;
  /// The caller no longer works: tasks placed with it go to others. By its thread.
  void caller_leaves(Origin& origin);

  // --- devices
  /// Whether `task`, which waits for `before` alone, would come to `worker`, too, if `before` ended there and the
  /// queues were empty.
  bool stays_on(const Task& task, const Task& before, unsigned worker) const noexcept;
  /// Whether another worker than `worker`, which has a device, can run `task`.
  bool has_other(const Task& task, unsigned worker) const noexcept;
  /// Sends `task`, which `worker` could not run, to the workers without a device that can, or to the next one with
  /// another device.
  void reroute(Task& task, unsigned worker, Origin& origin);
  /// Returns and forgets why the data of `task` could not be brought to its device; null: nothing is known.
  std::exception_ptr take_refusal(const Task& task);

  /// Marks `task`, and what it should have written, as failed because of `failure`. By the thread that would have run
  /// it, before its end.
  void poison(Task& task, FlowFailure& failure);
  /// Why `task`, which is ready, must not run, or null: the earliest failure among its inputs and the tasks it comes
  /// `after`.
  FlowFailure* why_cancelled(Task& task);
  /// `task` will not run, because of `cause`: marks what it should have written, and counts it. The caller ends it
  /// next.
  void cancel(Task& task, FlowFailure& cause);

  // --- the end of a flow that is cancelled
  /// Whether the ready `task` begins at a position that tasks have begun at before; if not, `ask_to_begin` decides.
  bool may_begin(const Task& task) const noexcept { return cutoff_.within(flow_position(task)); }
  /// Asks whether a ready task may begin. `hold`: the task is kept until `decide_end`, and then becomes ready once
  /// more. `over`: it is behind the end of the flow, and the caller drops it.
  Cutoff::Answer ask_to_begin(Task& task, std::int64_t now_ns);
  /// Whether `task`, which waits for one that has begun, may begin, too, as far as is known. If not, the task is not
  /// kept.
  bool may_begin_behind(const Task& task, std::int64_t now_ns);
  /// Drops `task`, since the flow has ended before it. The data that it should have written keeps its value; data
  /// without one gets a mark that says so. The caller ends it next.
  void drop_behind_end(Task& task);
  /// Marks that the data that `event` writes has no value here until the task that overwrites it has run.
  void mark_lost(Task& event);
  /// Freezes the position in the flow (`position_of` of ids) behind which nothing has begun or will before
  /// `decide_end`.
  std::uint64_t freeze_end();
  /// Tasks behind `position` do not run. Called after the `freeze_end` that the program or another rank caused.
  void decide_end(std::uint64_t position);
  /// Freezes and decides the end of the flow here, unless it was decided before.
  void end_here();
  /// Begins another flow: all tasks of the cancelled one have ended.
  void reopen();
  /// True if the flow is cancelled and the task with this id is behind its end.
  bool is_behind_end(TaskId id) const noexcept { return cutoff_.passed(id); }
  /// Lets ids be those of several ranks, many of which are one position of the flow (`TaskNumber`).
  void expect_ranks() noexcept { of_ranks_ = true; }
  /// Lets tasks that begin within `ahead_ns` be counted together.
  void set_ahead(std::int64_t ahead_ns) noexcept { ahead_ns_ = ahead_ns; }
  std::uint64_t position_of(TaskId id) const noexcept { return of_ranks_ ? TaskNumber::position(id) : id; }

 private:
  Cutoff::Answer ask(const Task& task, std::int64_t now_ns);
  bool stage(Task& task, NodeIndex node);
  NodeIndex choose_node(Task& task);
  static bool writes_in_device(const Task& task) noexcept;
  std::optional<unsigned> next_device(const Task& task, unsigned worker) const noexcept;
  NodeIndex node_of(const Task& task) const noexcept;
  void end_with_joins(Task& task, Origin& origin) {
    end_one(task, origin);
    while (__builtin_expect(origin.joins != nullptr, 0)) {
      Task* join = origin.joins;
      origin.joins = join->next;
      end_one(*join, origin);
    }
  }
  void end_one(Task& task, Origin& origin);
  void end_and_place(Task& task, Origin& origin);
  TaskId last_of(std::uint64_t position) const noexcept { return of_ranks_ ? TaskNumber::last_id(position) : position; }
  /// Under `cutoff_lock_`: ends the flow behind id `last`. Returns the tasks that were held until then, for `go_on`.
  std::vector<Task*> decide(TaskId last);
  void go_on(TaskId last, const std::vector<Task*>& held);
  /// Writes an event, with the present stamp of `origin`'s stream.
  template <trace::Type T, class... Fields>
  void emit(const Origin& origin, Fields... fields);
  void trace_ready(const Task& task, const Origin& origin);
  void push_traced(Task& task, const Origin& origin);
  static void trace_pushed(std::uint32_t task, unsigned worker, const Origin& origin);
  void poison_successor(Task& successor, FlowFailure* cause);
  void release(Task& successor, Origin& origin) {
    // The last predecessor needs no read-modify-write: no other thread will touch the count.
    if (successor.waits.load(std::memory_order_acquire) == 1 ||
        successor.waits.fetch_sub(1, std::memory_order_acq_rel) == 1)
      make_ready(successor, origin);
  }
  void retire(Task& task, bool recorded, Origin& origin);
  void enqueue(Task& task, Origin& origin);
  void keep_or_queue(Task& task, Origin& origin, bool told);
  void enqueue_restricted(Task& task, Origin& origin);
  void place(Task& task, Origin& origin);
  void push_placed(Task* tasks, Origin& origin);
  void place_left(Origin& origin);
  void enqueue_budgeted(Task& task, Origin& origin);
  void enqueue_in_order(Task& task, Origin& origin);
  void trace_pushed_to(unsigned worker, const Task& task, const Origin& origin);
  bool enter_turnstiles(Task& task);
  /// Releases what only placed tasks and tasks with commute or scratch accesses hold.
  void release_special(Task& task, Origin& origin);

  TaskPool* pool_ = nullptr;
  std::vector<WorkerSpec> workers_;
  bool binds_copies_;  ///< some worker uses private copies that move
  /// Groups of restricted codelets; used by the submitting thread.
  std::unordered_map<const CodeletCore*, WorkerGroup*> groups_;
  ReadyQueues* queues_ = nullptr;
  Placer* placer_ = nullptr;
  RecordedOrder* order_ = nullptr;
  Memory* memory_ = nullptr;
  base::Waker* caller_ = nullptr;
  std::uint32_t batch_ = 32;
  FailureLog failures_;
  MemoryGate memory_gate_;
  MessageWatch messages_{*this};
  std::atomic<trace::Session*> trace_{nullptr};
  std::mutex refusals_mutex_;
  /// Reasons for tasks that may run elsewhere; under the mutex.
  std::unordered_map<const Task*, std::exception_ptr> refusals_;
  std::atomic<std::size_t> refusal_count_{0};
  static constexpr std::uint64_t kMostAhead = 63;  ///< positions that count as begun with one that begins

  alignas(64) base::SpinLock cutoff_lock_;  ///< guards the members below; `Cutoff::within` does not need it
  Cutoff cutoff_;
  std::vector<Task*> held_;
  bool of_ranks_ = false;
  std::int64_t ahead_ns_ = 0;
  std::uint64_t ahead_ = 0;              ///< positions that were passed in the last `ahead_ns_`
  std::int64_t asked_at_ns_ = 0;
  alignas(64) std::atomic<std::uint64_t> finished_{0};
  alignas(64) std::atomic<std::uint64_t> wake_at_{UINT64_MAX};
};

}  // namespace tandem::runtime
