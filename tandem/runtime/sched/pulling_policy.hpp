// tandem/runtime/sched/pulling_policy.hpp: policies that keep ready tasks together until a worker needs one. Pure.
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

#include "tandem/runtime/sched/placing_policy.hpp"

namespace tandem::runtime {

struct Task;

/// A ready task that no worker has been given.
struct OpenTask {
  std::int32_t priority = 0;   ///< higher first
  std::uint64_t sequence = 0;  ///< in the order of the flow
  unsigned kind = 0;           ///< index among `ReadyView::kinds`
  std::uint32_t fits = ~0U;    ///< bit n: its data fits into memory n
  std::size_t bytes = 0;       ///< of its data
  Task* task = nullptr;        ///< of the runtime
  std::uint32_t depth = 0;     ///< see `flow_depth`; 0 with a priority, and where the policy does not go by it

  /// Whether this one goes before `other`.
  bool operator<(const OpenTask& other) const noexcept {
    if (priority != other.priority) return priority > other.priority;
    if (depth != other.depth) return depth < other.depth;
    return sequence != other.sequence ? sequence < other.sequence : std::less<>{}(task, other.task);
  }
};

/// The workers of one kind among those that can run a kind of tasks.
struct KindWorkers {
  DeviceKind kind = DeviceKind::cpu;  ///< of worker
  unsigned first = 0;                 ///< one of them
  unsigned count = 0;                 ///< how many there are
  Estimate kernel;                    ///< on these, as the estimates said lately
  double draw = 0;                    ///< what a kernel draws there, as a part of `EnergyAim::late_watts`; 0 where energy does not count
};

/// Ready tasks that are alike: of one codelet and footprint, and for the same workers.
struct ReadyKind {
  std::string codelet;              ///< its name
  model::Footprint footprint = {};  ///< of the data
  std::span<const unsigned> workers;     ///< that can run them, in ascending order
  std::vector<KindWorkers> by_kind;      ///< the same workers, by their kind
  std::set<OpenTask> tasks;              ///< the most urgent first; may be empty
  std::vector<std::uint32_t> given;      ///< by worker: such tasks that it has been given and that have not ended
  double seen = 0;                       ///< such tasks that have become ready; what was long ago counts less
  MemoryUse memory = {};                 ///< of their kernels on cores, where `LoadView::memory` is set
  bool prefers_devices = false;          ///< their codelet does
  std::uint64_t come = 0;                ///< such tasks that have become ready so far

  /// Those of `kind`; null: none of them can run it.
  const KindWorkers* workers_of(DeviceKind kind) const noexcept {
    for (const KindWorkers& some : by_kind)
      if (some.kind == kind) return &some;
    return nullptr;
  }
  /// How long a kernel takes on workers of `kind`.
  Estimate kernel_on(DeviceKind kind) const noexcept {
    const KindWorkers* const some = workers_of(kind);
    return some != nullptr ? some->kernel : Estimate();
  }
  /// What it draws there: `KindWorkers::draw`.
  double draw_on(DeviceKind kind) const noexcept;
};

/// A task that a message will make ready, and that waits for nothing else.
struct ArrivingTask {
  std::int32_t priority = 0;
  unsigned kind = 0;           ///< index among `ReadyView::kinds`
  std::int64_t due_ns = 0;     ///< when it is expected to be ready; on the clock of `LoadView`
  std::int64_t until_ns = 0;   ///< nobody waits for it longer
  std::uint64_t number = 0;    ///< of the runtime
  const Task* task = nullptr;  ///< of the runtime; it may be gone
};

/// Tasks of one kind that memory serves at once.
struct BusRoom {
  unsigned now = UINT_MAX;   ///< that may begin beside what runs
  unsigned most = UINT_MAX;  ///< beside nothing, at least 1; `UINT_MAX`: there is no limit
};

/// The ready tasks that no worker has been given.
class ReadyView {
 public:
  virtual ~ReadyView() = default;
  virtual std::size_t count() const noexcept = 0;                         ///< how many there are
  virtual std::size_t bytes() const noexcept = 0;                         ///< of their data, of which each datum counts as often as tasks use it
  virtual const std::vector<ReadyKind>& kinds() const noexcept = 0;       ///< in which they stand; some have no tasks at the moment
  virtual std::span<const AccessView> accesses(const OpenTask& task) const = 0;  ///< its data; valid until the next call
  virtual bool works(unsigned worker) const noexcept = 0;                 ///< it takes tasks: its device is not lost, and a caller waits
  virtual bool all_work() const noexcept { return false; }                ///< true: `works` is true of all workers
  /// How many tasks like it CPU workers of memory `node` may run at once before they fill its bus.
  virtual BusRoom bus_room(const OpenTask& task, NodeIndex node) const noexcept { return static_cast<void>(task), static_cast<void>(node), BusRoom(); }

  const ReadyKind& kind_of(const OpenTask& task) const noexcept { return kinds()[task.kind]; }  ///< what it is like
  bool fits(const OpenTask& task, NodeIndex node) const noexcept { return (task.fits >> node & 1U) != 0; }  ///< its data into the memory
};

/// Tasks of some kinds, the most urgent first, one after the other. A heap of the kinds by their next task, so a step costs the logarithm of their number.
class MostUrgentFirst {
 public:
  static constexpr std::size_t kMostKinds = 160;  ///< further ones wait until there are fewer; `Placer` has hardly more

  MostUrgentFirst() = default;
  /// Of all kinds.
  explicit MostUrgentFirst(const std::vector<ReadyKind>& kinds) {
    for (const ReadyKind& kind : kinds) add(kind);
  }
  /// Tasks of `kind`, too. Before `next`.
  void add(const ReadyKind& kind) {
    if (kind.tasks.empty() || count_ == kMostKinds) return;
    std::size_t at = count_++;
    Rest rest{kind.tasks.begin(), kind.tasks.end()};
    for (; at != 0 && *rest.at < *rests_[(at - 1) / 2].of.at; at = (at - 1) / 2) rests_[at].of = rests_[(at - 1) / 2].of;
    rests_[at].of = rest;
  }
  /// Nothing was added that has tasks, or there are no more.
  bool is_empty() const noexcept { return count_ == 0; }
  /// Null: there are no more.
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
  union Unset {  ///< so that those that are not used cost nothing
    Unset() noexcept {}
    Rest of;
  };

  std::array<Unset, kMostKinds> rests_;
  std::size_t count_ = 0;
};

/// A policy that decides when a worker needs a task. `pick` is pure: called by any thread, one at a time.
///
/// So a task goes to its worker late, when loads, durations and places of data are known, and in the order of priorities whatever the
/// order in which tasks became ready. A device is asked when it has fewer tasks than it may have in flight and two more, whose data
/// can be copied meanwhile; a core when it has none.
class PullingPolicy : public MixedPolicy {
 public:
  /// What `worker` runs next, of tasks that are ready, and there is one; null: all is better left to others. It is asked again after each
  /// task that becomes ready and each that ends. Not asked: tasks whose duration is not known on some kind of workers are given to one of
  /// these, one at a time; and when nobody has anything to do, the most urgent task is given away.
  virtual const OpenTask* pick(unsigned worker, const ReadyView& ready, const LoadView& load) const = 0;

  /// Whether `worker`, a core for which it has picked a task, rather waits for one of those that arrive: it is asked again when something changes, and
  /// when the message is late. The default: it would end one that is more urgent more than that wait sooner, and no other worker would.
  virtual bool holds(unsigned worker, const OpenTask& picked, std::span<const ArrivingTask> arriving, const ReadyView& ready, const LoadView& load) const;
  /// When it leaves a worker that has nothing to do without a task, it would leave others of the same kind and memory without one, too.
  virtual bool treats_alike() const noexcept { return false; }
  /// Of tasks without a priority (0) those go first that followed fewer tasks (`OpenTask::depth`); the order of the flow decides after that.
  virtual bool by_depth() const noexcept { return false; }
  /// False: `LoadView::prices` need not be set.
  virtual bool uses_prices() const noexcept { return true; }

  bool by_priority() const noexcept final { return true; }
  const PullingPolicy* pulling() const noexcept final { return this; }
};

/// `task` as placing policies see it; its data is valid until the next call.
TaskView view_of(const OpenTask& task, const ReadyView& ready);
/// Whether `worker` can run tasks of `kind`.
bool can_run(unsigned worker, const ReadyKind& kind, const LoadView& load);
/// Whether there is room for `task` where `worker` works, which can run it: for its data, and on the bus.
bool has_room(unsigned worker, const OpenTask& task, const ReadyView& ready, const LoadView& load);
/// Whether `worker` may be given `task`: both, and it takes tasks.
bool may_get(unsigned worker, const OpenTask& task, const ReadyView& ready, const LoadView& load);
/// Whether the data of all ready tasks may be too much for the budget of the memory where `worker` works: what is loaded may leave before it is used again.
bool has_small_memory(unsigned worker, const ReadyView& ready, const LoadView& load);

/// How long kernels of one kind of tasks take on a kind of worker, and on others. What a kernel costs where all wait for it: its duration, times 1 and
/// its draw.
struct KindTimes {
  Estimate here;              ///< on these workers
  double draw_here = 0;       ///< `KindWorkers::draw`
  double elsewhere_ns = std::numeric_limits<double>::infinity();  ///< on the other kind of worker where it costs least; infinite: none is known
  double draw_elsewhere = 0;  ///< there
  unsigned elsewhere = 0;     ///< workers of that kind
  double elsewhere_cost() const noexcept { return elsewhere_ns * (1 + draw_elsewhere); }
  double gain() const noexcept { return elsewhere_cost() / (here.mean_ns * (1 + draw_here)); }  ///< how many times less it costs here
};
KindTimes times_of(const ReadyKind& kind, DeviceKind here);

/// By how much the time that a worker saves others by running a task is worth more than what it draws more than they, who will have run all that they have in
/// `all_ns`. They share that time while there are tasks for all of them.
double worth_ns(const KindTimes& times, double all_ns);

/// Others will have run all that is ready of this kind before this worker would have run one, or that is not worth what it draws more; or nobody knows how
/// long it takes here.
bool is_left_to_others(const ReadyKind& kind, const KindTimes& times);

}  // namespace tandem::runtime
