// tandem/runtime/sched/placer.hpp: executes a policy that gives each ready task to a worker: views, loads, and what is learnt.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "tandem/base/spin_lock.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/runtime/machine/machine.hpp"
#include "tandem/runtime/sched/kind_numbers.hpp"
#include "tandem/runtime/sched/learned_estimates.hpp"
#include "tandem/runtime/sched/memory_gate.hpp"
#include "tandem/runtime/sched/memory_load.hpp"
#include "tandem/runtime/sched/placing_policy.hpp"
#include "tandem/runtime/sched/pulling_policy.hpp"
#include "tandem/runtime/sched/ready_queues.hpp"
#include "tandem/runtime/sched/sums_by_priority.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

class Explainer;

/// In front of `ReadyQueues`: a policy says which worker runs each ready task of the program, and the task goes to the queue of that
/// worker, which is the queue of a group with this one member. So priorities, sleep and wake-ups are those of groups.
///
/// A `PlacingPolicy` is asked when a task becomes ready. With a `PullingPolicy` tasks wait here: it is asked for a worker that has fewer
/// tasks than `set_most` allows, when the worker looks for one (`feed`), and, for a worker that has found none, after each change: a
/// task that becomes ready, and another worker that looks for one, as each does when a task has ended. While tasks wait here, some
/// worker has one, or is given one without asking, or looks again at a time: so there is always a change to come.
///
/// A task is charged to its worker from that choice to `forget`: the time that it will take there, and the copies of its data that no
/// other task there has been charged with. An end of a task corrects the worker's load, so that wrong estimates do not add up.
///
/// Memory-bound tasks of a `PlacingPolicy` may wait at the `MemoryGate` before they begin, still charged to their worker. Another worker with room may
/// run one (`may_move`), and is charged with it from then on.
///
/// Not chosen: a caller that does not wait, whose queue nobody would look into; a device that is lost; a device whose budget is smaller
/// than the task's data. If none is left, they are.
///
/// Threads: any. One spin lock guards loads and the tasks that wait here; the policy is asked under it. `TaskExtra::placed` belongs to
/// who has the task.
class Placer : private ReadyView {
 public:
  /// All outlive this. By the submitting thread, before tasks are pushed. `given` null: estimates are learnt only. `caller`: worker 0
  /// works only between `arrive` and `leave`.
  Placer(const Policy& policy, const Machine& machine, Estimates* given, ReadyQueues& queues, const clock::Clock& clock, bool caller);
  /// Policies take copies for `weight` times as long as they are: 0 to ignore them, more than 1 to save the links. Before tasks are pushed.
  void weigh_copies(double weight) noexcept;
  /// Estimates take into account how kernels and copies share memory, if that is known; and with a `PullingPolicy` CPU workers of a memory have at
  /// most as many memory-bound tasks as `gate` says, which outlives this. Before tasks are pushed, after `weigh_copies`.
  void use_memory(const MemoryShares& shares, const MemoryGate& gate);
  /// Policies count energy, too, by what `powers` say, which outlive this. Not `time`. Before tasks are pushed.
  void aim_at(Objective objective, const Powers& powers);
  /// With a `PullingPolicy` `worker` is given tasks while it has fewer than `count`, at least 1. Before tasks are pushed.
  void set_most(unsigned worker, unsigned count) noexcept { loads_[worker].most = count; }
  /// It is told of the choices. Before tasks are pushed; outlives this.
  void explain_to(Explainer& explainer) noexcept { explainer_ = &explainer; }

  /// `task` is ready and restricted. With a `PullingPolicy` it waits here: `serve` or `feed` is due, once for several tasks. Returns the
  /// tasks that have got a worker, linked by `Task::next`, in the order in which `push` is due.
  Task* offer(Task& task);
  /// After `offer`: those get tasks that have found none. Returns as `offer`.
  Task* serve();
  /// `worker` looks for a task, and before others do. Returns as `offer`.
  Task* feed(unsigned worker);
  /// A long message has begun or ended. Returns as `offer`.
  Task* note_messages();
  /// Copies take longer beside messages of so many bytes, as far as is known: `begin_message` and `end_message` are due.
  bool counts_messages(std::size_t bytes) const noexcept { return knows_messages_ && bytes >= kLargeMessage; }
  /// The data of such a message begins to come or to go. Copies of later choices are beside it, until `end_message`. Any thread.
  void begin_message() noexcept { messages_.fetch_add(1, std::memory_order_relaxed); }  // a number, which orders nothing
  void end_message() noexcept { messages_.fetch_sub(1, std::memory_order_relaxed); }
  /// That are counted now. For tests.
  std::uint32_t messages_under_way() const noexcept { return messages_.load(std::memory_order_relaxed); }
  /// `task`, of the program, waits for a message alone and will be ready at `due_ns`; it is not ready before this returns. With a `PullingPolicy` a core
  /// may wait for it rather than begin a long one (`PullingPolicy::holds`), at most a quarter longer than announced. `number` is for `expect_no_more`.
  void expect(std::uint64_t number, const Task& task, std::int64_t due_ns, std::int64_t now_ns);
  /// It is ready, or will not be. Without effect for others.
  void expect_no_more(std::uint64_t number);
  /// When `worker`, which has looked for a task, is to look again although nothing has changed, since it waits for one that arrives; 0: it does not.
  std::int64_t holds_until_ns(unsigned worker) const;
  /// How often it has done so.
  std::uint64_t holds(unsigned worker) const;
  /// Whether `flow_depth` of tasks matters.
  bool goes_by_depth() const noexcept { return pulling_ != nullptr && pulling_->by_depth(); }
  /// Whether `feed` has an effect.
  bool feeds() const noexcept { return pulling_ != nullptr; }
  /// The worker that `task`, from `offer` or `feed`, is for.
  static unsigned worker_of(const Task& task) noexcept { return task.extra->placed.worker; }
  /// `task`, from `offer` or `feed`, belongs to its worker when this returns. True: the caller has left meanwhile, and `take_left` is due.
  bool push(Task& task) {
    const PlacedTask& placed = task.extra->placed;
    const bool caller_may_leave = placed.worker == 0 && placed.is_present;
    queues_.push_to(*own_[placed.worker], &task);
    // Pairs with `leave`: both write and then read, sequentially consistent, so one of the two finds the task.
    return caller_may_leave && caller_is_away_.load(std::memory_order_seq_cst);
  }
  /// `task` has ended, or goes elsewhere. Without effect when nobody is charged with it.
  void forget(Task& task);
  /// Any CPU worker may run `task`, which has not begun: a `PlacingPolicy` has given it to one of them, all can run it, and they share one memory.
  bool may_move(const Task& task) const noexcept {
    if (task.extra->placed.worker >= alike_) return false;
    const std::vector<unsigned>& members = task.extra->group->members;  // from the least; CPU workers are the first
    return members.size() >= alike_ && members[alike_ - 1] == alike_ - 1;
  }
  /// `worker`, a CPU worker, runs `task` instead of the one that is charged with it. Without effect unless `may_move`.
  void move(Task& task, unsigned worker);
  /// The kernel of `task` took `duration_ns` on a worker of `kind`.
  void learn(const Task& task, DeviceKind kind, std::int64_t duration_ns);

  /// What has to be copied before `task` can run on `worker`. Any thread, while the task is ready.
  std::size_t missing_bytes(const Task& task, unsigned worker) const noexcept;

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
  using Sum = SumsByPriority::Sum;
  struct Load {
    unsigned most = 1;        ///< see `set_most`
    std::int64_t ask_at_ns = 0;  ///< when it is worth asking for it again, if nothing new has become ready
    std::int64_t last_ns = 0;    ///< how long the last task was expected to take that it was given
    std::int64_t holds_until_ns = 0;  ///< the worker waits for a task that arrives, and looks again then; 0: it does not
    std::uint64_t holds = 0;          ///< how often
    std::uint64_t refused_at = 0;  ///< of `changes_`, when it had no task and got none
    std::int64_t since_ns = 0;  ///< when it began with the first of them
    Sum all;
    SumsByPriority by_priority;         ///< empty where the policy does not sort
  };
  static constexpr double kMemory = 2'000;  ///< tasks
  static constexpr std::size_t kMostSpare = 256;
  static constexpr std::size_t kLargeMessage = 256 << 10;  ///< bytes; smaller ones do not last
  struct Chain {  ///< tasks in order
    Task* first = nullptr;
    Task* last = nullptr;
    void add(Task& task) noexcept;
  };

  // As a pulling policy sees it.
  std::size_t count() const noexcept override { return waiting_; }
  std::size_t bytes() const noexcept override { return waiting_bytes_; }
  const std::vector<ReadyKind>& kinds() const noexcept override { return kinds_; }
  std::span<const AccessView> accesses(const OpenTask& task) const override;
  bool works(unsigned worker) const noexcept override;
  bool all_work() const noexcept override { return !caller_is_away_.load(std::memory_order_relaxed) && !queues_.has_retired(); }
  BusRoom bus_room(const OpenTask& task, NodeIndex node) const noexcept override;

  void add(Load& load, std::int32_t priority, std::int64_t ns);
  void remove(Load& load, std::int32_t priority, std::int64_t ns);
  std::int64_t free_ns(const Load& load, std::int32_t priority, std::int64_t now_ns) const noexcept;
  static std::int64_t free_ns(const Load& load, std::int64_t now_ns) noexcept {
    return load.all.tasks == 0 ? now_ns : std::max(now_ns, load.since_ns + load.all.ns);
  }
  void look_at(const Task& task) const;
  std::size_t data_bytes() const noexcept;
  bool has_room(NodeIndex node, std::size_t bytes) const noexcept;
  std::uint32_t memories_with_room(std::size_t bytes) const noexcept;
  bool select_workers(const WorkerGroup& group);
  unsigned kind_of(const Task& task, model::Footprint footprint);
  void begin_kind(const Task& task, const KindNumbers::Kind& kind);
  void ask_durations(unsigned number);
  void ask_powers(ReadyKind& kind);
  void give_trials(Chain& chosen);
  void see(ReadyKind& kind);
  void look_at_links(std::int64_t now_ns);
  void look_at_memory();
  LoadView look_at_loads(std::int32_t priority, std::int64_t now_ns);
  void choose(Task& task, Chain& chosen);
  void take_out(const OpenTask& task);
  bool pull(unsigned worker, Chain& chosen, bool may_hold);
  bool begin_hold(unsigned worker, const OpenTask& picked, const LoadView& load);
  void forget_late(Load& load, std::int64_t now_ns);
  void end_arrival(std::vector<ArrivingTask>::iterator place);
  void note_refused(unsigned worker);
  void note_hungry(unsigned worker) noexcept;
  void pull_for_hungry(Chain& chosen);
  bool somebody_goes_on(std::int64_t now_ns) const noexcept;
  void give(Task& task, unsigned worker, const TaskView& view, const LoadView& load);
  void give(const OpenTask& open, unsigned worker, const LoadView& load, Chain& chosen);

  const PlacingPolicy* const placing_;
  const PullingPolicy* const pulling_;
  const bool by_priority_;
  const unsigned alike_;  ///< CPU workers, if they share one memory and a `PlacingPolicy` gives tasks to them; else 0
  const bool has_budgets_;
  const Machine& machine_;
  ReadyQueues& queues_;
  const clock::Clock& clock_;
  LearnedEstimates estimates_;
  Explainer* explainer_ = nullptr;
  std::vector<WorkerGroup*> own_;  ///< by worker: the group of it alone
  std::atomic<bool> caller_is_away_;
  std::atomic<std::uint32_t> messages_{0};  ///< that come or go and are counted
  bool knows_messages_ = false;             ///< of some link the rate beside messages is known

  Objective objective_ = Objective::time;
  const Powers* powers_ = nullptr;

  mutable base::SpinLock lock_;  ///< guards what follows
  std::vector<Load> loads_;
  std::vector<std::uint64_t> hungry_;  ///< bit w % 64 of entry w / 64: when worker w looked for tasks last it got fewer than it may have
  std::vector<LinkLoad> links_;
  std::unique_ptr<MemoryLoad> memory_;  ///< null: nothing is known of memory contention
  const MemoryGate* gate_ = nullptr;    ///< set where `memory_` is
  struct Rates {
    double alone, loaded, beside_messages;  ///< in bytes per ns; the latter two 0: not known
  };
  std::vector<Rates> rates_;  ///< of `links_` beside no kernels, if `memory_` is set
  bool knows_loaded_links_ = false;  ///< of some link the rate under load is known
  std::size_t waiting_ = 0;     ///< tasks without a worker, in `kinds_`
  std::size_t waiting_bytes_ = 0;  ///< of the data of each
  /// What a policy is told has changed so often: a task has become ready, was given to a worker or has ended there, durations, or how memory is used.
  /// Time passes, and copies end, without a change.
  std::uint64_t changes_ = 1;
  std::size_t unasked_ = 0;     ///< tasks that became ready since hungry workers were asked
  bool has_first_ = false;      ///< one of these was the only one of its kind
  std::vector<ReadyKind> kinds_;
  std::vector<std::set<OpenTask>::node_type> spare_;  ///< for further tasks in `kinds_`
  KindNumbers numbers_;          ///< of `kinds_`; each has the tasks that arrive, wait, or have a worker
  std::vector<bool> is_known_;   ///< by kind: how long its tasks take on all that can run them
  std::vector<double> prices_;  ///< by worker
  std::vector<KindPart> parts_;  ///< by kind of worker
  std::optional<EnergyAim> aim_;  ///< nothing: time counts alone
  double seen_ = 0;             ///< sum over `kinds_` when prices were set
  double unpriced_ = 0;         ///< tasks that became ready since
  std::vector<ArrivingTask> arriving_;
  // Of the task that is looked at.
  mutable std::vector<AccessView> access_room_;  ///< for `accesses_`, and more
  mutable std::span<const AccessView> accesses_;
  std::vector<unsigned> candidates_;
  std::vector<WorkerLoad> views_;
};

}  // namespace tandem::runtime
