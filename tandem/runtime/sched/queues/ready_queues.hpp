// tandem/runtime/sched/queues/ready_queues.hpp: the concurrent queues that execute a policy, and the sleep of workers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/base/inbox.hpp"
#include "tandem/base/published.hpp"
#include "tandem/runtime/sched/policy.hpp"
#include "tandem/runtime/sched/queues/idle_set.hpp"
#include "tandem/runtime/sched/queues/priority_queue.hpp"
#include "tandem/runtime/sched/queues/task_queue.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::base {
class FiberLocal;
}

namespace tandem::runtime {

/// Ready tasks, from the threads that make them ready to the workers.
///
/// Each queue has a pipe from the submitting thread, an inbox for threads outside the runtime and for other workers
/// (both are lock-free), and a priority queue under a spin lock. Only workers take that lock: of their own queue at
/// each pop, of a neighbour's when they steal. The submitting thread takes no lock.
///
/// A worker with tasks of its own does not look into the pipe at each pop, since that would take a line from the
/// submitting thread's cache, and both would wait for it at each task. All tasks in the pipe have the priority of the
/// task last taken from it (`submitted_priority`), unless the submitting thread has said otherwise (`priority_changes`,
/// set after it has put a task of another priority than the one before). So the order is as if the pipe were emptied at
/// each pop.
///
/// Tasks that only some workers can run are in the queue of their group (`WorkerGroup`), from which each of these
/// workers takes: by priority among its own queue and those of its groups, and from its groups first among equals. So
/// they have priorities, and go to whichever member is free. A worker whose tasks wait for transfers stops taking more
/// after a few, so that one device does not collect what others could run.
///
/// Workers of a memory node with a budget share the tasks that have memory there (`stage_together`), whichever of them
/// asked for a task's data.
///
/// Sleeping and waking: `IdleSet` states the protocol. Its reads and writes of queues are these. A push puts into an
/// inbox or a pipe, or writes a queue's size, and then calls `wake_one`; all are sequentially consistent, as are the
/// reads of `looks_empty`. A worker that moves tasks from there to the priority queue beside it holds the queue's lock
/// until the size counts them. So a reader that finds inbox and pipe empty reads the size after that worker has
/// released the lock. A thief, whose tasks are in no queue for a moment, calls `wake_one` when they are in one. A push
/// to a group wakes one idle member that would take the task; a woken worker that takes another task, or none, wakes
/// the next one (`wake_next_if_work`, `pass_on_wake`).
///
/// Promises. A worker that polls the network is awake, and looks for tasks next. So what it receives needs no wake-up
/// (`Promise`): the worker counts as woken from then on. No task is left beside sleepers, since the worker does one of
/// these:
/// - it takes a task, sees more, and wakes the next worker; a hold that begins instead puts the task back, which wakes
///   one;
/// - it takes none, because another worker did: that one is awake, and looks again before it sleeps;
/// - it leaves, or the workers pause: it passes the wake-up on;
/// - it announces itself, and sleeps only if its last look finds all queues empty. It sees its own pushes, unless
///   another worker has taken the tasks.
/// Another worker that announces itself meanwhile finds the tasks at its last look, or the worker that takes the first
/// of them sees it: these writes and reads are those of a push and a sleeper, where the wake-up comes a little later.
/// The promising worker must be able to take whatever is pushed from outside: it shares tasks, and is not on hold. The
/// explorer of orders tries this (tests/interleave).
class ReadyQueues {
 public:
  static constexpr unsigned kMaxWorkers = 1024;
  static constexpr unsigned kAnyQueue = UINT16_MAX;  ///< for the trace: the queue is not known

  /// `distance[a][b]`: distance between the cores of workers a and b, which share all tasks. `pinned_only` further
  /// workers follow them in number: devices, which run only what is pushed to them.
  ReadyQueues(const Policy& policy, const std::vector<std::vector<unsigned>>& distance, unsigned pinned_only,
              std::uint64_t seed);

  void set_waker(unsigned worker, base::Waker* waker) noexcept { idle_.set_waker(worker, waker); }

  /// A worker takes the task with the least `bytes(task, worker)` among the first `kByData` of its groups. Set before
  /// tasks are pushed.
  static constexpr std::size_t kByData = 64;
  using MissingBytes = std::function<std::size_t(const Task& task, unsigned worker)>;
  void choose_by_data(MissingBytes bytes) { missing_bytes_ = std::move(bytes); }

  /// Lets `worker` begin: its driver holds it until its first wake-up.
  void start(unsigned worker) noexcept { idle_.waker(worker).wake(); }

  /// Pushes a task that was ready when submitted. By the submitting thread. Returns the number of its queue.
  unsigned push_submitted(Task* task) {
    const unsigned queue = choose_for_submitted(*task);
    put_submitted(task, queue);
    return queue;
  }
  /// `push_submitted` in two steps: the choice of the queue, and the push.
  unsigned choose_for_submitted(const Task& task) {
    return place(task, Situation::kNoWorker, submitted_sequence_, submitted_random_);
  }
  void put_submitted(Task* task, unsigned queue);
  /// Pushes a task that `worker` has made ready; by that worker.
  void push_released(unsigned worker, Task* task);
  /// Pushes a task that a thread outside the runtime has made ready.
  void push_from_outside(Task* task);
  /// While it lives, tasks that the calling thread, a worker's that shares tasks, makes ready from outside wake no
  /// worker. If there were any (`pending`) the worker counts as woken from then on; see "Promises" above.
  class Promise {
   public:
    explicit Promise(const ReadyQueues& queues) noexcept { promised_ = {&queues, false}; }
    ~Promise() { promised_.to = nullptr; }
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;
    bool pending() const noexcept { return promised_.pending; }
  };
  /// Pushes a task that only `worker` may run. Any thread.
  void push_pinned(unsigned worker, Task* task);
  /// The group of these workers; `processors` run its tasks if devices could not. By the submitting thread. Lives as
  /// long as this.
  WorkerGroup& group_of(const std::vector<unsigned>& members, WorkerGroup* processors = nullptr);
  /// Pushes a task that the workers of `group` can run. Any thread.
  void push_to(WorkerGroup& group, Task* task);
  /// Removes the tasks from the queue of `group`, in their order, linked by `Task::next`. Any thread.
  Task* take_all_of(WorkerGroup& group);
  /// Makes `members`, which share all tasks, share those whose data is staged on their node, too. Before tasks are
  /// pushed.
  void stage_together(std::vector<unsigned> members);
  /// Whether `task`, which `worker` has taken and which waits for its data, comes back to this worker only.
  bool comes_back(unsigned worker, const Task& task) const noexcept {
    return lanes_[worker]->staged == nullptr || task.restricted;
  }
  /// Notes that a task that `worker` has taken waits for its data, and will come back. By that worker.
  void note_staging(unsigned worker) noexcept { lanes_[worker]->staging.fetch_add(1); }
  /// Pushes `task`, which `worker` had taken, after its data has come. Any thread.
  void push_staged(unsigned worker, Task* task);
  /// Sets how many tasks of `worker` may wait for their data before it leaves those of its groups to others. Before it
  /// starts.
  void set_most_staging(unsigned worker, unsigned count) noexcept { lanes_[worker]->most_staging = count; }
  /// Notes that `worker` can run nothing any more: of its groups it takes only what no other member can run. By that
  /// worker.
  void retire(unsigned worker) noexcept;
  bool is_retired(unsigned worker) const noexcept { return lanes_[worker]->retired.load(); }
  /// Whether some worker has retired.
  bool has_retired() const noexcept { return has_retired_.load(); }
  /// Whether `worker` takes no further tasks of its groups before some of its data has come.
  bool stages_enough(unsigned worker) const noexcept { return !takes_from_groups(*lanes_[worker]); }

  /// The next task for `worker`, or null. By that worker.
  Task* pop(unsigned worker);
  /// The next task that only `worker` may run, or above `priority`, wherever it is; null: none. By that worker.
  Task* pop_above(unsigned worker, std::int32_t priority);
  /// Puts back a task that `worker` has popped and does not run now, as the next one of its priority.
  void put_back(unsigned worker, Task* task);

  /// Whether `worker`, which could run `task` for `task_ns`, waits for a more urgent one instead.
  bool waits(const Task& task, std::int64_t task_ns, std::int32_t expected, std::int64_t in_ns) const noexcept;

  /// Whether `worker` may run `task`, which it has just released, without queueing it.
  bool may_run_at_once(unsigned worker, const Task& task) const noexcept;

  /// Announces that `worker` will sleep unless `looks_empty` says no. `is_near`: it stays awake at first; see
  /// `IdleSet`.
  void announce_idle(unsigned worker, bool is_near = false) noexcept { idle_.announce(worker, is_near); }
  bool looks_empty(unsigned worker) const noexcept;
  bool looks_empty_above(unsigned worker, std::int32_t priority) noexcept;
  /// Whether a worker sleeps, or is about to. A hint.
  bool somebody_idle() const noexcept { return idle_.any(); }
  /// Number of sleeping workers that share tasks. A hint.
  const std::atomic<std::uint32_t>& idle_count() const noexcept { return idle_.count(); }
  /// Ends `announce_idle`. Returns true when another thread had chosen this worker to wake up.
  bool withdraw_idle(unsigned worker) noexcept { return idle_.withdraw(worker); }
  /// Called when `worker`, which was woken, leaves without looking for work (the caller's, when its wait is over):
  /// wakes another one if there is work.
  void pass_on_wake(unsigned worker) noexcept;
  /// Called after a pop by a worker that had been woken.
  void wake_next_if_work(unsigned worker) noexcept;

  /// Number of tasks in queues; approximate while others run. By the submitting thread.
  std::size_t size() const noexcept;
  /// Checks the queues, and that they agree with the numbers that other threads read. Takes each queue's lock. By the
  /// submitting thread.
  bool check_invariants() const;
  unsigned worker_count() const noexcept { return sharing_; }
  std::uint64_t steals(unsigned worker) const noexcept { return lanes_[worker]->steals.get(); }
  /// Worker from whose queue the last `pop` took its task; no value: from its own queue, or a shared one. By that
  /// worker.
  const std::optional<unsigned>& last_victim(unsigned worker) const noexcept { return lanes_[worker]->victim; }

 private:
  using Queue = TaskQueue;
  struct Promised {
    const ReadyQueues* to = nullptr;
    bool pending = false;
  };
  static constinit thread_local Promised promised_;
  static const base::FiberLocal own_promise_;
  struct Membership {  ///< of a worker in a group; a list that only grows
    WorkerGroup* group = nullptr;
    const Membership* next = nullptr;
  };
  struct alignas(64) Lane {  ///< of one worker
    base::Inbox<Task> pinned;
    std::atomic<const Membership*> groups{nullptr};  ///< added to by the submitting thread; release, acquire
    /// Tasks that it has taken and whose data is under way; written by the worker, sequentially consistent as the idle
    /// set.
    std::atomic<unsigned> staging{0};
    WorkerGroup* staged = nullptr;  ///< null: tasks that it has staged come back to it alone
    std::atomic<bool> retired{false};  ///< written by the worker, sequentially consistent as the idle set
    unsigned most_staging = 2;         ///< one is copied while one runs
    Queue* home = nullptr;  ///< null: runs only pinned tasks and those of its groups
    std::vector<unsigned> victims;
    std::uint64_t sequence = 0;
    std::uint64_t random = 0;
    base::Published<std::uint64_t> steals;
    std::optional<unsigned> victim;   ///< owner of the queue of the last pop
    Task* pinned_in_order = nullptr;  ///< tasks taken from `pinned`, not yet run
  };

  static void take_new(Queue& queue);
  static void note_size(Queue& queue) noexcept;
  static bool filled(const Queue& queue) noexcept;
  static Task* pop_from(Queue& queue);
  static Task* pop_from(Queue& queue, std::int32_t above);
  static std::optional<std::int32_t> top_of(Queue& queue);
  static bool takes_from_groups(const Lane& lane) noexcept;
  static bool has_staged(const Lane& lane) noexcept { return lane.staged != nullptr && filled(lane.staged->queue); }
  bool serves(const Lane& lane, const WorkerGroup& group) const noexcept;
  Task* pop_from_groups(unsigned worker, std::optional<std::int32_t> above);
  Task* pop_by_data(Queue& queue, unsigned worker);
  void wake_member(const WorkerGroup& group) noexcept;
  static ReadyTask as_ready(const Task& task) noexcept;
  Task* take_pinned(Lane& lane);
  Task* steal(Lane& lane);
  Task* steal_from(Queue& victim, Lane& lane);
  unsigned place(const Task& task, unsigned from, std::uint64_t& sequence, std::uint64_t& random) noexcept;

  const Policy& policy_;
  MissingBytes missing_bytes_;  ///< set: groups are served by data
  bool per_worker_;
  unsigned sharing_;  ///< number of workers that share all tasks: the first ones
  bool by_priority_;
  bool keeps_released_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<bool> has_retired_{false};  ///< written after `Lane::retired`
  /// Used by the submitting thread; workers find theirs in their lanes.
  std::vector<std::unique_ptr<WorkerGroup>> groups_;
  std::vector<std::unique_ptr<Membership>> memberships_;
  std::uint64_t submitted_sequence_ = 0;
  std::uint64_t submitted_random_ = 0;

  IdleSet<> idle_;
};

}  // namespace tandem::runtime
