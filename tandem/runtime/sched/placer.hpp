// tandem/runtime/sched/placer.hpp: executes a policy that gives each ready task to a worker: views, loads, and what is learnt.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/runtime/machine/machine.hpp"
#include "tandem/runtime/sched/learned_estimates.hpp"
#include "tandem/runtime/sched/placing_policy.hpp"
#include "tandem/runtime/sched/ready_queues.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// In front of `ReadyQueues`: each ready task of the program is shown to a `PlacingPolicy` and goes to the queue of the worker that the
/// policy names, which is the queue of a group with this one member. So priorities, sleep and wake-ups are those of groups.
///
/// A task is charged to its worker from `choose` to `forget`: the time that it will take there, and the copies of its data that no
/// other task there has been charged with. An end of a task corrects the worker's load, so that wrong estimates do not add up.
///
/// Not chosen: a caller that does not wait, whose queue nobody would look into; a device that is lost; a device whose budget is smaller
/// than the task's data. If none is left, they are.
///
/// Threads: any. One spin lock guards loads; the policy is asked under it. `TaskExtra::placed` belongs to who has the task.
class Placer {
 public:
  /// All outlive this. By the submitting thread, before tasks are pushed. `given` null: estimates are learnt only. `caller`: worker 0
  /// works only between `arrive` and `leave`.
  Placer(const PlacingPolicy& policy, const Machine& machine, Estimates* given, ReadyQueues& queues, const clock::Clock& clock, bool caller);

  /// The worker that gets `task`, which is ready and restricted; it is charged with it.
  struct Choice {
    unsigned worker = 0;
    bool is_present = true;  ///< false: it is a caller that does not wait, and no other can run the task
  };
  Choice choose(Task& task);
  /// `task`, for which `choose` has said `choice`, belongs to that worker when this returns. True: the caller has left meanwhile, and
  /// `take_left` is due.
  bool push(const Choice& choice, Task& task) {
    queues_.push_to(*own_[choice.worker], &task);
    // Pairs with `leave`: both write and then read, sequentially consistent, so one of the two finds the task.
    return choice.worker == 0 && choice.is_present && caller_is_away_.load(std::memory_order_seq_cst);
  }
  /// `task` has ended, or goes elsewhere. Without effect when nobody is charged with it.
  void forget(Task& task);
  /// The kernel of `task` took `duration_ns` on a worker of `kind`.
  void learn(const Task& task, DeviceKind kind, std::int64_t duration_ns);

  /// The caller waits, and works meanwhile.
  void arrive() noexcept { caller_is_away_.store(false, std::memory_order_seq_cst); }
  /// It no longer does; `take_left` is due.
  void leave() noexcept { caller_is_away_.store(true, std::memory_order_seq_cst); }
  /// The tasks in the caller's queue, linked by `Task::next`, for others.
  Task* take_left() { return queues_.take_all_of(*own_[0]); }

  /// By worker, the tasks that are charged to it. For tests and messages.
  std::vector<std::uint32_t> charged() const;
  /// The sums agree. Any thread.
  bool check_invariants() const;

 private:
  struct Sum {
    std::int64_t ns = 0;  ///< what the tasks take
    std::uint32_t tasks = 0;
  };
  struct Load {
    std::int64_t since_ns = 0;  ///< when it began with the first of them
    Sum all;
    std::vector<std::pair<std::int32_t, Sum>> by_priority;  ///< the highest first; empty where the policy does not sort
  };
  struct Alike {  ///< tasks of one codelet and footprint
    std::vector<std::uint32_t> by_worker;
    std::uint32_t total = 0;
  };

  void add(Load& load, std::int32_t priority, std::int64_t ns);
  void remove(Load& load, std::int32_t priority, std::int64_t ns);
  std::int64_t free_ns(const Load& load, std::int32_t priority, std::int64_t now_ns) const noexcept;
  void look_at(const Task& task);
  bool select_workers(const WorkerGroup& group);
  bool may_get(unsigned worker) const noexcept;
  void charge(Task& task, unsigned worker, const TaskView& view, const LoadView& load, std::uint64_t kind_of_task);

  const PlacingPolicy& policy_;
  const bool by_priority_;
  const Machine& machine_;
  ReadyQueues& queues_;
  const clock::Clock& clock_;
  LearnedEstimates estimates_;
  std::vector<WorkerGroup*> own_;  ///< by worker: the group of it alone
  std::atomic<bool> caller_is_away_;

  mutable base::SpinLock lock_;  ///< guards what follows
  std::vector<Load> loads_;
  std::vector<LinkLoad> links_;
  std::unordered_map<std::uint64_t, Alike> alike_;  ///< of live tasks
  // Of the task that is being placed.
  std::vector<AccessView> accesses_;
  std::vector<unsigned> candidates_;
  std::vector<WorkerLoad> views_;
  std::size_t bytes_ = 0;
};

}  // namespace tandem::runtime
