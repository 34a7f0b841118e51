// tandem/runtime/sched/contention/memory_load.hpp: kernels that use each memory now, and how long the next one takes
// beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/model/tasks/history.hpp"
#include "tandem/runtime/machine/machine.hpp"
#include "tandem/runtime/sched/contention/memory_gate.hpp"
#include "tandem/runtime/sched/contention/memory_shares.hpp"
#include "tandem/runtime/sched/estimates.hpp"

namespace tandem::runtime {

/// Known use of memory by kernels of one kind of tasks on cores.
struct MemoryUse {
  double demand = 0;    ///< part of a core's rate that a kernel asks for, from 0 to 1; see `MemoryShares`
  double alone_ns = 0;  ///< duration of a kernel beside nothing else; 0: not known
  /// It is limited by memory: it asks for at least half of a core's share when all cores compete.
  bool is_bound = false;
};

/// The tasks that each memory serves, as `Placer` charges them to CPU workers, and what is learnt of tasks from that.
///
/// **What a kernel takes.** A worker with charged tasks asks for the mean of their demands. The sum over the workers of
/// a memory gives the share s of a core there, and the next kernel takes its time alone, times its slowdown
/// (`MemoryShares`).
///
/// **What is learnt.** The duration of a kernel, divided by its slowdown, is its time alone; a `model::History` keeps
/// these. Its slowdown follows from the mean of s while it ran, which is known from P(t), the sum of s dt up to t:
///
///   mean = (P(end) - P(begin)) / (end - begin)
///
/// **How much a kernel asks for.** `CodeletCore::memory_bound` says all or nothing. Otherwise its rate, the bytes of
/// its data, once each, over its time, is compared with the share that it had:
///
///   much less         memory did not limit it: this rate is its demand
///   about the same    memory limited it: it asks for at least as much, and for a core's full rate as long as
///                     nothing else was seen
///   much more         caches serve it: it asks for nothing
///
/// Tasks of a new kind often begin together; each seems to ask only for the common share until some run beside fewer.
/// With a wrong number of bytes nothing is corrected, and times are as measured.
///
/// Threads: `Placer` calls it under its lock.
class MemoryLoad {
 public:
  /// `shares`: known figures of each memory. `rule`: the most charged memory-bound tasks that run at once; the others
  /// wait. `machine` outlives this.
  MemoryLoad(MemoryShares shares, const Machine& machine, const MemoryGateRule& rule = {});

  /// Notes whether messages use memory.
  void set_messages(bool are_under_way, std::int64_t now_ns);

  /// Begins a new kind under this number, whose kernels move `bytes` in all.
  void begin_kind(unsigned kind, std::size_t bytes, std::optional<bool> memory_bound);
  /// Use of memory by tasks of a kind.
  const MemoryUse& use_of(unsigned kind) const noexcept { return kinds_[kind].use; }

  /// Charges `worker`, a CPU worker or not, with a task of `kind` whose kernel is expected to take `kernel_ns`. Returns
  /// its demand, for `forget`.
  float charge(unsigned kind, unsigned worker, std::int64_t kernel_ns, std::int64_t now_ns);
  void forget(float demand, unsigned worker, std::int64_t kernel_ns, std::int64_t now_ns);
  /// Charges a task that has not begun to `to` instead of `from`; both are CPU workers of one memory.
  void move(float demand, unsigned from, unsigned to, std::int64_t kernel_ns, std::int64_t now_ns);
  /// Learns that a kernel of `kind` took `duration_ns` on `worker`, and has just ended. Before `forget`.
  void learn(unsigned kind, unsigned worker, double duration_ns, std::int64_t now_ns);

  /// Replaces `kernel` by the duration on `worker`, if the kernel uses memory there.
  void adjust(Estimate& kernel, const MemoryUse& use, unsigned worker) const noexcept;
  /// Rate of a copy between two memories whose link moves `bytes_per_ns` alone.
  double copy_bytes_per_ns(double bytes_per_ns, NodeIndex from, NodeIndex to) const noexcept;

  /// Demand, in whole cores, of the memory-bound tasks charged to CPU workers of `node`.
  double bound_cores(NodeIndex node) const noexcept { return buses_[node].bound_cores; }
  /// Demand of CPU workers of `node`, in whole cores.
  double cores(NodeIndex node) const noexcept { return buses_[node].cores; }
  /// Whether nothing is charged any more. For tests.
  bool is_idle() const noexcept;
  /// Whether a task of this demand, as `charge` returned it, is memory-bound.
  bool is_bound(double demand) const noexcept { return demand >= bound_; }

 private:
  struct Bus {  ///< of one memory
    unsigned workers = 0;      ///< CPU workers that work in it
    double cores = 0;          ///< sum of the workers' demands
    double bound_cores = 0;    ///< sum of the demands of memory-bound tasks
    double bound_rate = 0;     ///< part of `cores` for memory-bound tasks
    double progress_ns = 0;    ///< P(`settled_ns`)
    double mean_cores = 0;  ///< mean of `cores` over about the last `window_ns`, since planned copies begin at any time
    double window_ns = 1;      ///< half of a kernel's duration
    std::int64_t settled_ns = 0;
  };
  struct Worker {
    bool is_core = false;
    NodeIndex node = 0;
    std::uint32_t tasks = 0;   ///< tasks charged to the worker
    double demand_ns = 0;      ///< sum of demand times duration
    double bound_ns = 0;       ///< part of `demand_ns` of memory-bound tasks
    double kernel_ns = 0;      ///< sum of durations
    std::int64_t since_ns = 0;  ///< when the first task began
    double since_progress_ns = 0;  ///< P at `since_ns`
    double demand() const noexcept { return kernel_ns > 0 ? demand_ns / kernel_ns : 0; }
    double bound_demand() const noexcept { return kernel_ns > 0 ? bound_ns / kernel_ns : 0; }
  };
  struct Kind {
    MemoryUse use;
    double bytes = 0;
    bool is_given = false;   ///< the codelet gives its demand
    bool is_seen = false;    ///< a kernel ran that memory did not limit
    bool is_warm = false;    ///< the first kernel has run
    model::History alone;
  };

  double of_socket(const Bus& bus, double cores) const noexcept;
  double share_now(const Bus& bus) const noexcept;
  void settle(Bus& bus, std::int64_t now_ns) noexcept;
  void change(Worker& worker, double demand, double kernel_ns, int tasks, std::int64_t now_ns) noexcept;
  void add(Worker& worker, double demand, std::int64_t kernel_ns, std::int64_t now_ns) noexcept;
  static void judge(Kind& kind, double moved, double had) noexcept;

  const MemoryShares shares_;
  const MemoryGateRule rule_;
  const double bound_;  ///< tasks of this demand are memory-bound
  bool messages_ = false;
  std::vector<Bus> buses_;       // by memory
  std::vector<Worker> workers_;
  std::vector<Kind> kinds_;
};

}  // namespace tandem::runtime
