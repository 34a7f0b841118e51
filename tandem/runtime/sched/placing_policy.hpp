// tandem/runtime/sched/placing_policy.hpp: policies that give each ready task to a worker by what they expect. Pure.
#pragma once

#include <algorithm>
#include <bit>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "tandem/runtime/data/access.hpp"
#include "tandem/runtime/machine/machine.hpp"
#include "tandem/runtime/sched/estimates.hpp"
#include "tandem/runtime/sched/memory_load.hpp"
#include "tandem/runtime/sched/policy.hpp"
#include "tandem/runtime/sched/powers.hpp"

namespace tandem::runtime {

/// How a task uses a piece of data, and where that is.
struct AccessView {
  AccessMode mode = AccessMode::read;  ///< how
  std::size_t bytes = 0;     ///< that a copy moves
  std::uint32_t valid = 0;   ///< bit n: memory n has the value
  std::uint32_t coming = 0;  ///< bit n: a task that was placed there brings the value to memory n
  const void* datum = nullptr;  ///< tells it apart from others

  /// Memory `node` does not have the value, which the task sees there.
  bool is_missing(NodeIndex node) const noexcept { return sees_value(mode) && valid != 0 && (valid >> node & 1U) == 0; }
  /// A task that was placed there brings it.
  bool is_coming(NodeIndex node) const noexcept { return (coming >> node & 1U) != 0; }
  /// The memory from which it is taken: the first one that has it.
  NodeIndex source() const noexcept { return static_cast<NodeIndex>(std::countr_zero(valid)); }
};

/// A task that has become ready.
struct TaskView {
  std::string_view codelet;               ///< its name
  std::int32_t priority = 0;              ///< higher first
  model::Footprint footprint = {};        ///< of its data
  std::span<const AccessView> accesses;   ///< without scratch memory; `reduce` as a copy that is read and written, valid where none is to be brought
  std::span<const unsigned> workers;      ///< that may get it, in ascending order; never empty
  std::span<const std::uint32_t> alike;   ///< by worker: tasks of its codelet and footprint that were placed there and have not ended; empty: none
  MemoryUse memory = {};                  ///< of its kernel on a core, where `LoadView::memory` is set
  bool prefers_devices = false;           ///< its codelet does
  std::uint64_t come = 0;                 ///< tasks of its codelet and footprint that have become ready so far
};

/// What a worker has to do.
struct WorkerLoad {
  /// When it will have run the tasks that were placed there and go before this one; not before now. With a policy by priority those
  /// of lower priority do not, but for half of a kernel that may be running.
  std::int64_t free_ns = 0;
  std::uint32_t tasks = 0;  ///< that were placed there and have not ended
};

/// What a link has to do.
struct LinkLoad {
  MachineLink link;          ///< its figures
  std::int64_t free_ns = 0;  ///< when the copies will have ended that placed tasks need
  double load = 0;           ///< from 0 to 1: how many of the other links of its memories have copies to do, of those whose rate under load is known
  bool has_messages = false;  ///< large messages come or go

  /// How long a copy of `bytes` takes, beside those of the other links, and messages.
  double copy_ns(std::size_t bytes) const noexcept { return link.copy_ns(bytes, load, has_messages); }
};

/// Of the tasks that became ready so far, what was long ago counting less, the part that costs least on one kind of worker.
struct KindPart {
  DeviceKind kind = DeviceKind::cpu;
  double part = 0;  ///< from 0 to 1
};

/// The machine at one moment.
struct LoadView {
  const Machine& machine;               ///< its workers and memories
  const Estimates& estimates;           ///< how long kernels take
  std::int64_t now_ns = 0;              ///< on the clock of all times here
  std::span<const WorkerLoad> workers;  ///< by worker
  std::span<const LinkLoad> links;      ///< `from * nodes + to`
  /// By worker, what its time is worth, for pulling policies; see `prices_of`. Their sum is 1.
  std::span<const double> prices = {};
  std::span<const KindPart> parts = {};  ///< by kind of worker, where `prices` are set; see `parts_of`
  const MemoryLoad* memory = nullptr;  ///< set: kernels on cores take longer the more of them use memory
  const EnergyAim* energy = nullptr;   ///< set: it counts, and not the time alone

  /// The link between two memories.
  const LinkLoad& link(NodeIndex from, NodeIndex to) const noexcept { return links[from * machine.nodes.size() + to]; }
  /// How long the kernel of `task` takes on `worker`.
  Estimate kernel(const TaskView& task, unsigned worker) const {
    Estimate kernel = estimates.expected_ns(task.codelet, task.footprint, machine.workers[worker].kind);
    if (memory != nullptr) [[unlikely]] memory->adjust(kernel, task.memory, worker);
    return kernel;
  }
};

/// The copies that a task needs in a memory.
struct Transfers {
  double alone_ns = 0;        ///< how long they take, one after the other, without waiting for other copies of their links
  std::int64_t ready_ns = 0;  ///< when all will have ended, behind what the links have to do; not before now
};

/// What `task` needs before it can run in memory `node`. Data without a value, and data that comes there anyway, needs nothing.
Transfers transfers_to(const TaskView& task, const LoadView& load, NodeIndex node);

/// The same, of some accesses.
struct CopyTimes {
  double alone_ns = 0;  ///< as of `Transfers`
  double ready_ns = 0;  ///< from now on
};
/// Copies to one memory, while they are added one after the other.
class CopyQueue {
 public:
  /// Of `access`, by `link`.
  void add(const AccessView& access, const LinkLoad& link, const LoadView& load) noexcept {
    const double free_ns = static_cast<double>(link.free_ns - load.now_ns);
    if (access.is_coming(link.link.to)) {
      come_ns_ = std::max(come_ns_, free_ns);
      return;
    }
    alone_ns_ += link.copy_ns(access.bytes);
    waited_ns_ = std::max(waited_ns_, free_ns);
  }
  /// Behind `queued_ns` more on the links.
  CopyTimes behind(double queued_ns) const noexcept {
    return {alone_ns_, alone_ns_ > 0 ? std::max(come_ns_, waited_ns_ + queued_ns + alone_ns_) : come_ns_};
  }

 private:
  double alone_ns_ = 0;
  double come_ns_ = 0;    ///< the copies that others need
  double waited_ns_ = 0;  ///< behind the links' other copies
};

/// Whether cores may try tasks that prefer devices. So many `devices` know how long these take and can run them, so many `wait` for devices, and so many
/// have `come`: a kernel on a core may take as long as dozens on a device, and should make nobody wait.
inline bool may_try_on_cores(std::size_t devices, std::size_t wait, std::uint64_t come) noexcept {
  return devices != 0 && (wait >= 8 * devices || come >= 32);
}
/// How many more tasks they may try, beside those under way, until `kernel` is known.
inline unsigned trials_left(const Estimate& kernel, unsigned under_way) noexcept {
  return kernel.missing == 0 ? UINT_MAX : kernel.missing - std::min(kernel.missing, under_way);
}
/// Of the tasks that workers have (`alike`, by worker), those of cores.
unsigned tasks_on_cores(std::span<const unsigned> workers, std::span<const std::uint32_t> alike, const Machine& machine) noexcept;

/// A worker whose kind has not run tasks like `task` often enough, and that has none of them: the first that is free; nothing: there is
/// none. So each kind is tried, by a few workers at a time.
std::optional<unsigned> worker_to_try(const TaskView& task, const LoadView& load);

/// The worker with the least `cost(worker, kernel_ns)` of those of a known duration; when none is known, the one with the fewest tasks
/// like `task`, then with the fewest of all.
template <class Cost>
unsigned cheapest(const TaskView& task, const LoadView& load, const Cost& cost);

/// The worker that ends the task first, by its load and the duration of the kernel.
unsigned earliest_end(const TaskView& task, const LoadView& load);

/// With `LoadView::energy`: the worker on which the task costs least, by its energy and by the time by which all that has a worker ends later. `with_copies`:
/// the end is that of `dmda`, otherwise that of `dm`. Of workers that cost nearly the same, the one that ends it first. When the power of some worker that
/// could get it is not known, nothing.
std::optional<unsigned> least_energy(const TaskView& task, const LoadView& load, bool with_copies);

/// A policy for machines whose workers are of several kinds, or work in several memories. Tasks of the runtime's own, and machines of
/// equal cores, have queues with stealing in any case (as `lws`).
class MixedPolicy : public Policy {
 public:
  bool queue_per_worker() const noexcept final { return true; }
  bool keeps_released() const noexcept final { return true; }
  unsigned place(const ReadyTask& task, const Situation& now) const noexcept final { return lws_->place(task, now); }
  std::vector<unsigned> victims(unsigned thief, std::span<const unsigned> distance) const final { return nearest_first(thief, distance); }

 private:
  std::unique_ptr<Policy> lws_ = make_lws();
};

/// A policy that decides, when a task becomes ready, which worker runs it. `choose` is pure: called by any thread, one at a time.
class PlacingPolicy : public MixedPolicy {
 public:
  /// One of `task.workers`.
  virtual unsigned choose(const TaskView& task, const LoadView& load) const = 0;

  const PlacingPolicy* placing() const noexcept final { return this; }
};

// --- implementation

/// The durations of a task on the kinds of workers, each asked once, or once for each memory if it matters.
class KernelTimes {
 public:
  /// Both outlive this.
  KernelTimes(const TaskView& task, const LoadView& load) : task_(task), load_(load) {}
  /// On `worker`.
  const Estimate& on(unsigned worker) {
    const MachineWorker& here = load_.machine.workers[worker];
    const NodeIndex node = load_.memory != nullptr ? here.node : 0;
    for (unsigned i = 0; i < count_; ++i)
      if (kinds_[i] == here.kind && nodes_[i] == node) return estimates_[i];
    if (count_ == kMost) count_ = 0;
    kinds_[count_] = here.kind;
    nodes_[count_] = node;
    return estimates_[count_++] = load_.kernel(task_, worker);
  }

 private:
  static constexpr unsigned kMost = 8;
  const TaskView& task_;
  const LoadView& load_;
  unsigned count_ = 0;
  DeviceKind kinds_[kMost] = {};
  NodeIndex nodes_[kMost] = {};
  Estimate estimates_[kMost] = {};
};

template <class Cost>
unsigned cheapest(const TaskView& task, const LoadView& load, const Cost& cost) {
  KernelTimes times(task, load);
  std::optional<unsigned> best;
  double least = 0;
  for (const unsigned worker : task.workers) {
    const Estimate& kernel = times.on(worker);
    if (!kernel.known) continue;
    const double here = cost(worker, kernel.mean_ns);
    if (best && !(here < least)) continue;
    best = worker;
    least = here;
  }
  if (best) return *best;
  const auto rank = [&](unsigned worker) {
    const bool is_left_to_others = task.prefers_devices && load.machine.workers[worker].kind == DeviceKind::cpu;
    return std::tuple(is_left_to_others, task.alike.empty() ? 0U : task.alike[worker], load.workers[worker].tasks);
  };
  return *std::ranges::min_element(task.workers, {}, rank);
}

}  // namespace tandem::runtime
