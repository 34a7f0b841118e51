// tandem/runtime/sched/policies/pulling_policy.hpp: policies that keep ready tasks together until a worker needs one.
// Pure.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tandem/runtime/sched/policies/placing_policy.hpp"

namespace tandem::runtime {

struct Task;

/// A ready task that has no worker yet.
struct OpenTask {
  std::int32_t priority = 0;   ///< higher first
  std::uint64_t sequence = 0;  ///< order in the flow
  unsigned kind = 0;           ///< index among `ReadyView::kinds`
  std::uint32_t fits = ~0U;    ///< bit n: the task's data fits into memory n
  std::size_t bytes = 0;       ///< bytes of the task's data
  Task* task = nullptr;        ///< the runtime's task
  std::uint32_t depth = 0;     ///< see `flow_depth`; 0 with a priority, and where the policy does not use it

  /// Order of the tasks; the most urgent is first.
  bool operator<(const OpenTask& other) const noexcept {
    if (priority != other.priority) return priority > other.priority;
    if (depth != other.depth) return depth < other.depth;
    return sequence != other.sequence ? sequence < other.sequence : std::less<>{}(task, other.task);
  }
};

/// The workers of one kind among those that can run a kind of tasks.
struct KindWorkers {
  DeviceKind kind = DeviceKind::cpu;  ///< kind of the workers
  unsigned first = 0;                 ///< one of them
  unsigned count = 0;                 ///< how many there are
  Estimate kernel;                    ///< latest estimate on these workers
  double draw = 0;  ///< power of a kernel there, as a part of `EnergyAim::late_watts`; 0 if energy does not count
};

/// Ready tasks that are alike: of one codelet and footprint, and for the same workers.
struct ReadyKind {
  std::string codelet;              ///< name of the codelet
  model::Footprint footprint = {};  ///< footprint of the data
  std::span<const unsigned> workers;     ///< workers that can run the tasks, ascending
  std::vector<KindWorkers> by_kind;      ///< the same workers, by their kind
  std::set<OpenTask> tasks;              ///< the most urgent first; may be empty
  std::vector<std::uint32_t> given;      ///< by worker: such tasks given to it that have not ended
  double seen = 0;                       ///< such tasks that became ready; older ones count less
  MemoryUse memory = {};                 ///< use of memory by their kernels on cores, if `LoadView::memory` is set
  bool prefers_devices = false;          ///< their codelet prefers devices
  std::uint64_t come = 0;                ///< such tasks that became ready so far

  /// The workers of `kind`; null: none of them can run the tasks.
  const KindWorkers* workers_of(DeviceKind kind) const noexcept {
    for (const KindWorkers& some : by_kind)
      if (some.kind == kind) return &some;
    return nullptr;
  }
  /// Duration of a kernel on workers of `kind`.
  Estimate kernel_on(DeviceKind kind) const noexcept {
    const KindWorkers* const some = workers_of(kind);
    return some != nullptr ? some->kernel : Estimate();
  }
  /// `KindWorkers::draw` of workers of `kind`.
  double draw_on(DeviceKind kind) const noexcept;
};

/// A task that waits only for a message.
struct ArrivingTask {
  std::int32_t priority = 0;
  unsigned kind = 0;           ///< index among `ReadyView::kinds`
  std::int64_t due_ns = 0;     ///< expected time at which it is ready, on the clock of `LoadView`
  std::int64_t until_ns = 0;   ///< no worker waits for it longer
  std::uint64_t number = 0;    ///< number in the runtime
  const Task* task = nullptr;  ///< the runtime's task; it may be gone
};

/// Number of tasks of one kind that a memory serves at once.
struct BusRoom {
  unsigned now = UINT_MAX;   ///< tasks that may begin beside what runs
  unsigned most = UINT_MAX;  ///< tasks beside nothing, at least 1; `UINT_MAX`: no limit
};

/// The ready tasks that have no worker yet.
class ReadyView {
 public:
  virtual ~ReadyView() = default;
  virtual std::size_t count() const noexcept = 0;                         ///< number of tasks
  virtual std::size_t bytes() const noexcept = 0;  ///< bytes of their data, each datum as often as tasks use it
  /// Kinds of the tasks; some have no tasks at the moment.
  virtual const std::vector<ReadyKind>& kinds() const noexcept = 0;
  /// Data of a task; valid until the next call.
  virtual std::span<const AccessView> accesses(const OpenTask& task) const = 0;
  /// Whether it takes tasks: its device is not lost, and a caller waits.
  virtual bool works(unsigned worker) const noexcept = 0;
  virtual bool all_work() const noexcept { return false; }                ///< true: `works` is true of all workers
  /// Number of tasks like `task` that CPU workers of memory `node` may run at once before they saturate its bus.
  virtual BusRoom bus_room(const OpenTask& task, NodeIndex node) const noexcept {
    return static_cast<void>(task), static_cast<void>(node), BusRoom();
  }

  const ReadyKind& kind_of(const OpenTask& task) const noexcept { return kinds()[task.kind]; }  ///< kind of a task
  /// Whether its data fits into the memory.
  bool fits(const OpenTask& task, NodeIndex node) const noexcept { return (task.fits >> node & 1U) != 0; }
};

/// Tasks of some kinds, the most urgent first, one after the other. A heap of the kinds by their next task, so a step
/// costs the logarithm of their number.
class MostUrgentFirst {
 public:
  /// Further kinds wait until there are fewer; `Placer` has hardly more.
  static constexpr std::size_t kMostKinds = 160;

  MostUrgentFirst() = default;
  /// Iterates over tasks of all kinds.
  explicit MostUrgentFirst(const std::vector<ReadyKind>& kinds) {
    for (const ReadyKind& kind : kinds) add(kind);
  }
  /// Adds the tasks of `kind`. Before `next`.
  void add(const ReadyKind& kind) {
    if (kind.tasks.empty() || count_ == kMostKinds) return;
    std::size_t at = count_++;
    Rest rest{kind.tasks.begin(), kind.tasks.end()};
    for (; at != 0 && *rest.at < *rests_[(at - 1) / 2].of.at; at = (at - 1) / 2)
      rests_[at].of = rests_[(at - 1) / 2].of;
    rests_[at].of = rest;
  }
  /// Whether there are no more tasks.
  bool is_empty() const noexcept { return count_ == 0; }
  /// The next task; null: there are no more.
  const OpenTask* next() noexcept {
    if (count_ == 0) return nullptr;
    Rest rest = rests_[0].of;
    const OpenTask* const first = &*rest.at;
    if (++rest.at == rest.end) rest = rests_[--count_].of;
    std::size_t at = 0;
    for (std::size_t child = 1; child < count_; child = 2 * at + 1) {
      if (child + 1 < count_ && *rests_[child + 1].of.at < *rests_[child].of.at) ++child;
      if (!(*rests_[child].of.at < *rest.at)) break;
      rests_[at].of = rests_[child].of;
      at = child;
    }
    if (count_ != 0) rests_[at].of = rest;
    return first;
  }

 private:
  struct Rest {
    std::set<OpenTask>::const_iterator at, end;
  };
  union Unset {  ///< so that unused entries cost nothing
    Unset() noexcept {}
    Rest of;
  };

  std::array<Unset, kMostKinds> rests_;
  std::size_t count_ = 0;
};

/// A policy that decides when a worker needs a task. `pick` is pure; any thread calls it, one at a time.
///
/// So a task goes to its worker late, when loads, durations and places of data are known, and in the order of
/// priorities, whatever the order in which tasks became ready. A device gets a task when it has fewer tasks than it
/// may have in flight plus two, whose data can be copied meanwhile; a core when it has none.
class PullingPolicy : public MixedPolicy {
 public:
  /// The ready task that `worker` runs next; null: all are better left to others. Called when at least one is ready,
  /// and again after each task that becomes ready and each that ends. It is not called in two cases: a task whose
  /// duration is not known on some kind of workers goes to one of these, one at a time; and when no worker has anything
  /// to do, the most urgent task is given away.
  virtual const OpenTask* pick(unsigned worker, const ReadyView& ready, const LoadView& load) const = 0;

  /// Whether `worker`, a core for which it has picked a task, rather waits for one of `arriving`: it is called again
  /// when something changes, and when the message is late. The default: true if the worker would end a more urgent task
  /// sooner, by more than that wait, and no other worker would.
  virtual bool holds(unsigned worker, const OpenTask& picked, std::span<const ArrivingTask> arriving,
                     const ReadyView& ready, const LoadView& load) const;
  /// Whether, when it leaves an idle worker without a task, it would leave others of the same kind and memory without
  /// one, too.
  virtual bool treats_alike() const noexcept { return false; }
  /// Whether tasks without a priority (0) that follow fewer tasks (`OpenTask::depth`) go first; the order of the flow
  /// decides after that.
  virtual bool by_depth() const noexcept { return false; }
  /// Whether it uses `LoadView::prices`.
  virtual bool uses_prices() const noexcept { return true; }

  bool by_priority() const noexcept final { return true; }
  const PullingPolicy* pulling() const noexcept final { return this; }
};

/// View of `task` for placing policies; its data is valid until the next call.
TaskView view_of(const OpenTask& task, const ReadyView& ready);
/// Whether `worker` can run tasks of `kind`.
bool can_run(unsigned worker, const ReadyKind& kind, const LoadView& load);
/// Whether there is room for the data of `task`, and on the bus, where `worker` works, which can run it.
bool has_room(unsigned worker, const OpenTask& task, const ReadyView& ready, const LoadView& load);
/// Whether `worker` may be given `task`: it can run it, has room for it, and takes tasks.
bool may_get(unsigned worker, const OpenTask& task, const ReadyView& ready, const LoadView& load);
/// Whether the data of all ready tasks may exceed the budget of the memory where `worker` works, so that loaded data
/// may leave before it is used again.
bool has_small_memory(unsigned worker, const ReadyView& ready, const LoadView& load);

/// Durations of kernels of one kind of tasks on a kind of worker, and on others. The cost of a kernel while all wait
/// for it is its duration, times 1 plus its draw.
struct KindTimes {
  Estimate here;              ///< duration on these workers
  double draw_here = 0;       ///< `KindWorkers::draw`
  /// On the other kind of worker where it costs least; infinite: not known.
  double elsewhere_ns = std::numeric_limits<double>::infinity();
  double draw_elsewhere = 0;  ///< draw on that kind
  unsigned elsewhere = 0;     ///< number of workers of that kind
  double elsewhere_cost() const noexcept { return elsewhere_ns * (1 + draw_elsewhere); }
  /// How many times less it costs here.
  double gain() const noexcept { return elsewhere_cost() / (here.mean_ns * (1 + draw_here)); }
};
KindTimes times_of(const ReadyKind& kind, DeviceKind here);

/// Benefit, in ns, of running a task on this worker: the time that it saves the others, less what it draws more than
/// they. The others finish all their tasks in `all_ns`, and share the time saved while there are tasks for all of them.
double worth_ns(const KindTimes& times, double all_ns);

/// True if the other workers finish all ready tasks of this kind before this worker would finish one, or if its benefit
/// is less than its additional draw, or if its duration here is not known.
bool is_left_to_others(const ReadyKind& kind, const KindTimes& times);

}  // namespace tandem::runtime
