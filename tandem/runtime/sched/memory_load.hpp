// tandem/runtime/sched/memory_load.hpp: which kernels use which memory now, and what the next one takes beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/model/tasks/history.hpp"
#include "tandem/runtime/machine/machine.hpp"
#include "tandem/runtime/sched/estimates.hpp"
#include "tandem/runtime/sched/memory_gate.hpp"
#include "tandem/runtime/sched/memory_shares.hpp"

namespace tandem::runtime {

/// How kernels of one kind of tasks use memory on cores, as far as is known.
struct MemoryUse {
  double demand = 0;    ///< part of what a core can move that a kernel asks for, from 0 to 1; see `MemoryShares`
  double alone_ns = 0;  ///< what a kernel takes beside nothing else; 0: not known
  bool is_bound = false;  ///< it takes what memory gives: at least half of what each core has when all compete
};

/// For `Placer`: the tasks that each memory serves, as they are charged to CPU workers, and what is learnt of tasks from that.
///
/// **What a kernel takes.** A worker that is charged with tasks asks for the mean of their demands. The sum over the workers of a memory says which
/// share s a core has there, and the next kernel takes its time alone, times its slowdown (`MemoryShares`).
///
/// **What is learnt.** The time that a kernel took, divided by its slowdown, is what it would take alone; these are kept by a `model::History`. Its
/// slowdown follows from the mean of s while it ran, which is known from P(t), the sum of s dt up to t: mean = (P(end) - P(begin)) / (end - begin).
///
/// **How much a kernel asks for.** `CodeletCore::memory_bound` says all or nothing. Else what it moved (the bytes of its data, once each) over its
/// time is compared with the share that it had:
///
///   much less         the memory did not limit it: that is its demand
///   about the same    the memory limited it: it asks for at least as much, and for all that a core can move as long as nothing else was seen
///   much more         caches serve it: it asks for nothing
///
/// Tasks of a kind that nobody has seen often begin together; each of them seems to ask for no more than the share that all have, until some run beside
/// fewer. With the wrong number of bytes nothing is corrected, and times are those that were measured.
///
/// Threads: none; `Placer` calls it under its lock.
class MemoryLoad {
 public:
  /// `shares` is known; of each memory. Of the memory-bound tasks that are charged, no more run at once than `rule` allows; the others wait. `machine`
  /// outlives this.
  MemoryLoad(MemoryShares shares, const Machine& machine, const MemoryGateRule& rule = {});

  /// Messages use memory from now on, or no longer.
  void set_messages(bool are_under_way, std::int64_t now_ns);

  /// Tasks of this number are of a new kind, whose kernels move `bytes` in all.
  void begin_kind(unsigned kind, std::size_t bytes, std::optional<bool> memory_bound);
  /// How they use memory.
  const MemoryUse& use_of(unsigned kind) const noexcept { return kinds_[kind].use; }

  /// `worker`, a CPU worker or not, is charged with a task of `kind` whose kernel is expected to take `kernel_ns`. Returns its demand, for `forget`.
  float charge(unsigned kind, unsigned worker, std::int64_t kernel_ns, std::int64_t now_ns);
  void forget(float demand, unsigned worker, std::int64_t kernel_ns, std::int64_t now_ns);
  /// A task that has not begun, charged to `from`, is charged to `to` instead; both are CPU workers of one memory.
  void move(float demand, unsigned from, unsigned to, std::int64_t kernel_ns, std::int64_t now_ns);
  /// A kernel of `kind` took `duration_ns` on `worker`, and has just ended. Before `forget`.
  void learn(unsigned kind, unsigned worker, double duration_ns, std::int64_t now_ns);

  /// What a kernel takes on `worker`, in place of `kernel`, if it uses memory there.
  void adjust(Estimate& kernel, const MemoryUse& use, unsigned worker) const noexcept;
  /// What a copy between two memories has whose link moves `bytes_per_ns` alone.
  double copy_bytes_per_ns(double bytes_per_ns, NodeIndex from, NodeIndex to) const noexcept;

  /// What the memory-bound tasks ask for that CPU workers of `node` are charged with, in whole cores.
  double bound_cores(NodeIndex node) const noexcept { return buses_[node].bound_cores; }
  /// What CPU workers of `node` ask for, in whole cores.
  double cores(NodeIndex node) const noexcept { return buses_[node].cores; }
  /// Nothing is charged any more. For tests.
  bool is_idle() const noexcept;
  /// A task of this demand, as `charge` returned it, is memory-bound.
  bool is_bound(double demand) const noexcept { return demand >= bound_; }

 private:
  struct Bus {  ///< of one memory
    unsigned workers = 0;      ///< CPU workers that work in it
    double cores = 0;          ///< sum of their demands
    double bound_cores = 0;    ///< sum of those of memory-bound tasks
    double bound_rate = 0;     ///< part of `cores` that is for memory-bound tasks
    double progress_ns = 0;    ///< P(`settled_ns`)
    double mean_cores = 0;     ///< of `cores`, over about the last `window_ns`: copies that are planned begin at any time
    double window_ns = 1;      ///< half of what a kernel takes
    std::int64_t settled_ns = 0;
  };
  struct Worker {
    bool is_core = false;
    NodeIndex node = 0;
    std::uint32_t tasks = 0;   ///< that it is charged with
    double demand_ns = 0;      ///< sum of demand times duration
    double bound_ns = 0;       ///< of that, the part of memory-bound tasks
    double kernel_ns = 0;      ///< sum of durations
    std::int64_t since_ns = 0;  ///< when the first of them began
    double since_progress_ns = 0;  ///< P at that time
    double demand() const noexcept { return kernel_ns > 0 ? demand_ns / kernel_ns : 0; }
    double bound_demand() const noexcept { return kernel_ns > 0 ? bound_ns / kernel_ns : 0; }
  };
  struct Kind {
    MemoryUse use;
    double bytes = 0;
    bool is_given = false;   ///< the codelet says what it asks for
    bool is_seen = false;    ///< a kernel ran that memory did not limit
    bool is_warm = false;    ///< the first one has run
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
