// tandem/runtime/sched/placing/placer.hpp: executes a policy that gives each ready task to a worker: views, loads, and
// what is learnt.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/runtime/machine/machine.hpp"
#include "tandem/runtime/sched/contention/memory_gate.hpp"
#include "tandem/runtime/sched/placing/durations.hpp"
#include "tandem/runtime/sched/placing/loads.hpp"
#include "tandem/runtime/sched/placing/ready_kinds.hpp"
#include "tandem/runtime/sched/policies/placing_policy.hpp"
#include "tandem/runtime/sched/queues/ready_queues.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

class Explainer;

/// In front of `ReadyQueues`: a policy says which worker runs each ready task of the program, and the task goes to the
/// queue of that worker, which is the queue of a group with this one member. So priorities, sleep and wake-ups are
/// those of groups.
///
/// `PushPlacer` asks a `PlacingPolicy` when a task becomes ready. `PullPlacer` keeps tasks and asks a `PullingPolicy`
/// when a worker looks for one.
///
/// A task is charged to its worker (`Loads`) from that choice to `forget`.
///
/// Not chosen: a caller that does not wait, whose queue nobody would look into; a device that is lost; a device whose
/// budget is smaller than the task's data. If no other worker is left, one of these is chosen.
///
/// Threads: any. One spin lock guards loads, kinds and the tasks that wait here; the policy is asked under it.
/// `TaskExtra::placed` belongs to the thread that has the task.
class Placer {
 public:
  /// For a policy that places or pulls. All outlive it. By the submitting thread, before tasks are pushed. `caller`:
  /// worker 0 works only between `arrive` and `leave`.
  static std::unique_ptr<Placer> make(const Policy& policy, const Machine& machine, Durations& durations,
                                      ReadyQueues& queues, const clock::Clock& clock, bool caller);
  virtual ~Placer() = default;
  Placer(const Placer&) = delete;
  Placer& operator=(const Placer&) = delete;

  /// Policies take a copy to last `weight` times as long as expected: 0 to ignore copies, more than 1 to save the
  /// links. Before tasks are pushed.
  void weigh_copies(double weight) noexcept { loads_.weigh_copies(weight); }
  /// Estimates take into account how kernels and copies share memory, if that is known; and with a `PullingPolicy` CPU
  /// workers of a memory have at most as many memory-bound tasks as `gate` says, which outlives this. Before tasks are
  /// pushed, after `weigh_copies`.
  void use_memory(const MemoryShares& shares, const MemoryGate& gate) { loads_.use_memory(shares, gate); }
  /// Policies count energy, too, by what `powers` say, which outlive this. Not `time`. Before tasks are pushed.
  void aim_at(Objective objective, const Powers& powers) { kinds_.aim_at(objective, powers); }
  /// `explainer` is told of the choices. Before tasks are pushed; outlives this.
  void explain_to(Explainer& explainer) noexcept { explainer_ = &explainer; }

  /// `task` is ready and restricted. Returns the tasks that have got a worker, linked by `Task::next`, in the order in
  /// which `push` is due. Others wait here: `serve` or `feed` is due, once for several tasks.
  virtual Task* offer(Task& task) = 0;
  /// After `offer`: workers that have found no task may get one. Returns as `offer`.
  virtual Task* serve() { return nullptr; }
  /// `worker` looks for a task, and before others do. Returns as `offer`.
  virtual Task* feed(unsigned) { return nullptr; }
  /// Whether `feed` has an effect.
  virtual bool feeds() const noexcept { return false; }
  /// Where `feeds`, `worker` is given tasks while it has fewer than `count`, at least 1. Before tasks are pushed.
  virtual void set_most(unsigned, unsigned) noexcept {}
  /// Whether `flow_depth` of tasks matters.
  virtual bool goes_by_depth() const noexcept { return false; }
  /// A long message has begun or ended. Returns as `offer`.
  Task* note_messages();
  /// Messages beside which copies take longer, as far as is known.
  MessageCounter& messages() noexcept { return loads_.messages(); }

  /// `task`, of the program, waits for a message alone and will be ready at `due_ns`; it is not ready before this
  /// returns. Where `feeds`, a core may wait for it rather than begin a long one (`PullingPolicy::holds`), at most a
  /// quarter longer than announced. `number` is for `expect_no_more`.
  virtual void expect(std::uint64_t, const Task&, std::int64_t, std::int64_t) {}
  /// The task of `number` is ready, or will not be. Without effect for others.
  virtual void expect_no_more(std::uint64_t) {}
  /// When `worker`, which has looked for a task, is to look again although nothing has changed, since it waits for one
  /// that arrives; 0: it does not.
  virtual std::int64_t holds_until_ns(unsigned) const { return 0; }
  /// How often `worker` has waited so.
  virtual std::uint64_t holds(unsigned) const { return 0; }

  /// The worker that `task`, from `offer` or `feed`, is for.
  static unsigned worker_of(const Task& task) noexcept { return task.extra->placed.worker; }
  /// `task`, from `offer` or `feed`, belongs to its worker when this returns. True: the caller has left meanwhile, and
  /// `take_left` is due.
  bool push(Task& task) {
    const PlacedTask& placed = task.extra->placed;
    const bool caller_may_leave = placed.worker == 0 && placed.is_present;
    queues_.push_to(*own_[placed.worker], &task);
    // Pairs with `leave`: both write and then read, sequentially consistent, so one of the two finds the task.
    return caller_may_leave && caller_is_away_.load(std::memory_order_seq_cst);
  }
  /// `task` has ended, or goes elsewhere. Without effect when nobody is charged with it.
  void forget(Task& task);
  /// Any CPU worker may run `task`, which has not begun: a `PlacingPolicy` has given it to one of them, all can run it,
  /// and they share one memory.
  bool may_move(const Task& task) const noexcept {
    if (task.extra->placed.worker >= alike_) return false;
    const std::vector<unsigned>& members = task.extra->group->members;  // from the least; CPU workers are the first
    return members.size() >= alike_ && members[alike_ - 1] == alike_ - 1;
  }
  /// `worker`, a CPU worker, runs `task` instead of the one that is charged with it. Without effect unless `may_move`.
  void move(Task& task, unsigned worker);
  /// The kernel of `task` took `duration_ns` on a worker of `kind`, which `Durations` know already.
  void learn(const Task& task, DeviceKind kind, unsigned implementation, std::int64_t duration_ns);

  /// What has to be copied before `task` can run on `worker`. Any thread, while the task is ready.
  std::size_t missing_bytes(const Task& task, unsigned worker) const noexcept;

  /// The caller waits, and works meanwhile.
  void arrive() noexcept { caller_is_away_.store(false, std::memory_order_seq_cst); }
  /// The caller no longer waits; `take_left` is due.
  void leave() noexcept { caller_is_away_.store(true, std::memory_order_seq_cst); }
  /// The tasks in the caller's queue, linked by `Task::next`, for others.
  Task* take_left() { return queues_.take_all_of(*own_[0]); }

  /// By worker, the tasks that are charged to it. For tests and messages.
  std::vector<std::uint32_t> charged() const;
  /// The sums agree. Any thread.
  bool check_invariants() const;

 protected:
  struct Chain {  ///< tasks in order
    Task* first = nullptr;
    Task* last = nullptr;
    void add(Task& task) noexcept {
      task.next = nullptr;
      (last != nullptr ? last->next : first) = &task;
      last = &task;
    }
  };

  /// `alike`: CPU workers that may take tasks from each other. `by_priority` as `Loads`.
  Placer(const Machine& machine, Durations& durations, ReadyQueues& queues, const clock::Clock& clock, bool caller,
         KindNumbers::Bound bound, bool by_priority, unsigned alike);

  // Of the parts below, under `lock_`.
  virtual unsigned choose_worker(const TaskView& task, const LoadView& load) const = 0;
  /// Tasks that may have got a worker because a message has begun or ended are added to `chosen`.
  virtual void messages_changed(Chain&) {}
  /// A worker is no longer charged with a task; `may_begin`: memory-bound tasks may run now that waited.
  virtual void discharged(bool) {}
  /// How many tasks of a kind, by its number, wait or arrive here.
  virtual std::size_t kept(unsigned) const { return 0; }
  /// The sums over the tasks that wait here agree.
  virtual bool check_kept() const { return true; }
  /// As `learn`, of a task that its worker is charged with.
  virtual void learn_placed(const PlacedTask& placed, DeviceKind kind, unsigned implementation,
                            std::int64_t duration_ns);

  /// Prepares `placed` of a task that is ready, without a lock.
  PlacedTask& begin(Task& task);
  bool works(unsigned worker) const noexcept {
    return !(worker == 0 && caller_is_away_.load(std::memory_order_relaxed)) &&
           !(queues_.has_retired() && queues_.is_retired(worker));
  }
  bool all_work() const noexcept { return !caller_is_away_.load(std::memory_order_relaxed) && !queues_.has_retired(); }
  std::span<const AccessView> look_at(const Task& task) const;
  /// Of the data of the task that `look_at` has seen last.
  std::size_t data_bytes() const noexcept;
  /// Bit n: memory n has room for `bytes`.
  std::uint32_t memories_with_room(std::size_t bytes) const noexcept;
  /// The machine as a task of `priority` finds it.
  LoadView look_at_loads(std::int32_t priority);
  /// Gives `task` to a worker at once. `ready` as for `Explainer::given`.
  void choose(Task& task, Chain& chosen, const ReadyView* ready);
  void give(Task& task, unsigned worker, const TaskView& view, const LoadView& load, const ReadyView* ready);
  void learn_memory(const PlacedTask& placed, std::int64_t duration_ns, std::int64_t now_ns);

  const Machine& machine_;
  const clock::Clock& clock_;
  Durations& durations_;
  mutable base::SpinLock lock_;  ///< guards what follows, and what the parts add
  Loads loads_;
  ReadyKinds kinds_;

 private:
  bool select_workers(const WorkerGroup& group);

  ReadyQueues& queues_;
  const unsigned alike_;
  const bool has_budgets_;
  Explainer* explainer_ = nullptr;
  std::vector<WorkerGroup*> own_;  ///< by worker: the group of it alone
  std::atomic<bool> caller_is_away_;
  // Of the task that is looked at.
  mutable std::vector<AccessView> access_room_;  ///< for `accesses_`, and more
  mutable std::span<const AccessView> accesses_;
  std::vector<unsigned> candidates_;
};

}  // namespace tandem::runtime
