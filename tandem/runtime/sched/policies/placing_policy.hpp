// tandem/runtime/sched/policies/placing_policy.hpp: policies that give each ready task to a worker by expected
// durations. Pure.
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
#include "tandem/runtime/sched/contention/memory_load.hpp"
#include "tandem/runtime/sched/estimates.hpp"
#include "tandem/runtime/sched/policies/powers.hpp"
#include "tandem/runtime/sched/policy.hpp"

namespace tandem::runtime {

/// Use of a piece of data by a task, and where the data is.
struct AccessView {
  AccessMode mode = AccessMode::read;  ///< mode of the access
  std::size_t bytes = 0;     ///< bytes of a copy
  std::uint32_t valid = 0;   ///< bit n: memory n has the value
  std::uint32_t coming = 0;  ///< bit n: a task placed in memory n brings the value there
  const void* datum = nullptr;  ///< identity of the datum

  /// Whether the task needs the value in memory `node`, which does not have it.
  bool is_missing(NodeIndex node) const noexcept { return sees_value(mode) && valid != 0 && (valid >> node & 1U) == 0; }
  /// Whether a task placed in memory `node` brings the value there.
  bool is_coming(NodeIndex node) const noexcept { return (coming >> node & 1U) != 0; }
  /// The memory that is the source of a copy: the first one with the value.
  NodeIndex source() const noexcept { return static_cast<NodeIndex>(std::countr_zero(valid)); }
};

/// A task that has become ready.
struct TaskView {
  std::string_view codelet;               ///< name of the codelet
  std::int32_t priority = 0;              ///< higher first
  model::Footprint footprint = {};        ///< footprint of the data
  /// Without scratch memory; `reduce` as a private copy that is read and written, valid where nothing is to be fetched.
  std::span<const AccessView> accesses;
  std::span<const unsigned> workers;      ///< workers that may get it, ascending; never empty
  /// By worker: tasks of its codelet and footprint placed there that have not ended; empty: none.
  std::span<const std::uint32_t> alike;
  MemoryUse memory = {};                  ///< use of memory by its kernel on a core, if `LoadView::memory` is set
  bool prefers_devices = false;           ///< its codelet prefers devices
  std::uint64_t come = 0;                 ///< tasks of its codelet and footprint that became ready so far
};

/// Load of a worker.
struct WorkerLoad {
  /// End of the placed tasks that go before this one; not before now. With a policy by priority, tasks of lower
  /// priority do not count, except half of a kernel that may be running.
  std::int64_t free_ns = 0;
  std::uint32_t tasks = 0;  ///< placed tasks that have not ended
};

/// Load of a link.
struct LinkLoad {
  MachineLink link;          ///< its figures
  std::int64_t free_ns = 0;  ///< end of the copies that placed tasks need
  /// From 0 to 1: fraction of its memories' other links with known rates under load that have copies to do.
  double load = 0;
  bool has_messages = false;  ///< large messages are under way

  /// Duration of a copy of `bytes`, beside copies of the other links and messages.
  double copy_ns(std::size_t bytes) const noexcept { return link.copy_ns(bytes, load, has_messages); }
};

/// Part of the tasks that became ready so far that cost least on one kind of worker; older tasks count less.
struct KindPart {
  DeviceKind kind = DeviceKind::cpu;
  double part = 0;  ///< from 0 to 1
};

/// State of the machine at one moment.
struct LoadView {
  const Machine& machine;               ///< its workers and memories
  const Estimates& estimates;           ///< expected durations of kernels
  std::int64_t now_ns = 0;              ///< present time, on the clock of all times here
  std::span<const WorkerLoad> workers;  ///< by worker
  std::span<const LinkLoad> links;      ///< `from * nodes + to`
  /// By worker, the price of its time, for pulling policies; see `prices_of`. The sum is 1.
  std::span<const double> prices = {};
  std::span<const KindPart> parts = {};  ///< by kind of worker, where `prices` are set; see `parts_of`
  const MemoryLoad* memory = nullptr;  ///< set: kernels on cores take longer the more of them use memory
  const EnergyAim* energy = nullptr;   ///< set: energy counts, too

  /// The link between two memories.
  const LinkLoad& link(NodeIndex from, NodeIndex to) const noexcept { return links[from * machine.nodes.size() + to]; }
  /// Expected duration of the kernel of `task` on `worker`.
  Estimate kernel(const TaskView& task, unsigned worker) const {
    Estimate kernel = estimates.expected_ns(task.codelet, task.footprint, machine.workers[worker].kind);
    if (memory != nullptr) [[unlikely]] memory->adjust(kernel, task.memory, worker);
    return kernel;
  }
};

/// Copies that a task needs in a memory.
struct Transfers {
  double alone_ns = 0;        ///< their durations one after the other, without other copies of their links
  std::int64_t ready_ns = 0;  ///< end of all copies, after the present copies of the links; not before now
};

/// Copies that `task` needs before it can run in memory `node`. Data without a value, and data that comes there anyway,
/// needs none.
Transfers transfers_to(const TaskView& task, const LoadView& load, NodeIndex node);

/// Durations of the copies of some accesses.
struct CopyTimes {
  double alone_ns = 0;  ///< as in `Transfers`
  double ready_ns = 0;  ///< end of the copies, from now on
};
/// Copies to one memory, added one after the other.
class CopyQueue {
 public:
  /// Adds a copy for `access`, over `link`.
  void add(const AccessView& access, const LinkLoad& link, const LoadView& load) noexcept {
    const double free_ns = static_cast<double>(link.free_ns - load.now_ns);
    if (access.is_coming(link.link.to)) {
      come_ns_ = std::max(come_ns_, free_ns);
      return;
    }
    alone_ns_ += link.copy_ns(access.bytes);
    waited_ns_ = std::max(waited_ns_, free_ns);
  }
  /// Durations of the copies behind `queued_ns` more on the links.
  CopyTimes behind(double queued_ns) const noexcept {
    return {alone_ns_, alone_ns_ > 0 ? std::max(come_ns_, waited_ns_ + queued_ns + alone_ns_) : come_ns_};
  }

 private:
  double alone_ns_ = 0;
  double come_ns_ = 0;    ///< copies that other tasks need
  double waited_ns_ = 0;  ///< wait for the links' other copies
};

/// Whether cores may try tasks that prefer devices, when `devices` devices with known durations can run them, `wait`
/// tasks wait for devices, and `come` became ready so far: a kernel on a core may take as long as dozens on a device,
/// and should delay nothing.
inline bool may_try_on_cores(std::size_t devices, std::size_t wait, std::uint64_t come) noexcept {
  return devices != 0 && (wait >= 8 * devices || come >= 32);
}
/// Number of further trials, beside those under way, until `kernel` is known.
inline unsigned trials_left(const Estimate& kernel, unsigned under_way) noexcept {
  return kernel.missing == 0 ? UINT_MAX : kernel.missing - std::min(kernel.missing, under_way);
}
/// Number of tasks in `alike` (by worker) that cores have.
unsigned tasks_on_cores(std::span<const unsigned> workers, std::span<const std::uint32_t> alike,
                        const Machine& machine) noexcept;

/// A worker whose kind has not run tasks like `task` often enough, and that has none of them: the first free one; no
/// value: none. So each kind is tried, by a few workers at a time.
std::optional<unsigned> worker_to_try(const TaskView& task, const LoadView& load);

/// The worker with the least `cost(worker, kernel_ns)` among those with known durations; when none is known, the one
/// with the fewest tasks like `task`, then with the fewest of all.
template <class Cost>
unsigned cheapest(const TaskView& task, const LoadView& load, const Cost& cost);

/// The worker with the earliest end of the task, by its load and the duration of the kernel.
unsigned earliest_end(const TaskView& task, const LoadView& load);

/// With `LoadView::energy`: the worker on which the task costs least, by its energy and by how much it delays the end
/// of all placed tasks. `with_copies`: the end is that of `dmda`, otherwise that of `dm`. Among nearly equal costs, the
/// worker that ends it first. No value if the power of a possible worker is not known.
std::optional<unsigned> least_energy(const TaskView& task, const LoadView& load, bool with_copies);

/// A policy for machines whose workers are of several kinds, or work in several memories. The runtime's own tasks, and
/// machines of equal cores, always use queues with stealing (as `lws`).
class MixedPolicy : public Policy {
 public:
  bool queue_per_worker() const noexcept final { return true; }
  bool keeps_released() const noexcept final { return true; }
  unsigned place(const ReadyTask& task, const Situation& now) const noexcept final { return lws_->place(task, now); }
  std::vector<unsigned> victims(unsigned thief, std::span<const unsigned> distance) const final {
    return nearest_first(thief, distance);
  }

 private:
  std::unique_ptr<Policy> lws_ = make_lws();
};

/// A policy that decides when a task becomes ready which worker runs it. `choose` is pure; any thread calls it, one at
/// a time.
class PlacingPolicy : public MixedPolicy {
 public:
  /// Returns one of `task.workers`.
  virtual unsigned choose(const TaskView& task, const LoadView& load) const = 0;

  const PlacingPolicy* placing() const noexcept final { return this; }
};

// --- implementation

/// Durations of a task on the kinds of workers, each asked once, or once for each memory if it matters.
class KernelTimes {
 public:
  /// Both arguments outlive this.
  KernelTimes(const TaskView& task, const LoadView& load) : task_(task), load_(load) {}
  /// Duration on `worker`.
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
