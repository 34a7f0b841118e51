// tandem/runtime/sched/placing/loads.hpp: what workers, links and memories have to do, by the tasks that workers are
// charged with.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tandem/runtime/machine/machine.hpp"
#include "tandem/runtime/sched/contention/memory_gate.hpp"
#include "tandem/runtime/sched/contention/memory_load.hpp"
#include "tandem/runtime/sched/policies/placing_policy.hpp"
#include "tandem/runtime/sched/policies/pulling_policy.hpp"
#include "tandem/runtime/sched/queues/sums_by_priority.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// How many long messages are under way, beside which copies between memories take longer. Threads: any.
class MessageCounter {
 public:
  static constexpr std::size_t kLarge = 256 << 10;  ///< bytes; smaller messages end too soon to count

  /// Whether `begin` and `end` are due for a message of `bytes`: it is known how copies go beside it.
  bool counts(std::size_t bytes) const noexcept { return matter_ && bytes >= kLarge; }
  /// The data of such a message begins to come or to go; copies of later choices are beside it until `end`.
  void begin() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }  // a number, which orders nothing
  void end() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }
  /// How many have begun and not ended.
  std::uint32_t under_way() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  friend class Loads;
  bool matter_ = false;  ///< the rate of some link beside messages is known
  std::atomic<std::uint32_t> count_{0};
};

/// Each worker is charged with tasks: with the time that they will take there, and with the copies of their data that
/// no other task there has been charged with. The end of a task corrects the worker's load, so wrong estimates do not
/// add up.
///
/// Threads: none, but for `messages`; `Placer` calls it under its lock.
class Loads {
 public:
  /// `by_priority`: when a worker is free depends on the priority of the task that asks. `machine` outlives this.
  Loads(const Machine& machine, bool by_priority);
  /// As `Placer::weigh_copies` and `Placer::use_memory`.
  void weigh_copies(double weight) noexcept;
  void use_memory(const MemoryShares& shares, const MemoryGate& gate);

  MessageCounter& messages() noexcept { return messages_; }
  /// Null: nothing is known of memory contention.
  MemoryLoad* memory() const noexcept { return memory_.get(); }
  /// Messages may have begun or ended that use memory.
  void note_messages(std::int64_t now_ns);

  /// Brings `workers` and `links` to `now_ns`, as a task of `priority` finds them.
  void look(std::int32_t priority, std::int64_t now_ns);
  std::span<const WorkerLoad> workers() const noexcept { return views_; }
  std::span<const LinkLoad> links() const noexcept { return links_; }
  /// Tasks that `worker` is charged with.
  std::uint32_t tasks(unsigned worker) const noexcept { return loads_[worker].all.tasks; }
  /// How many tasks of this `use` and `priority` CPU workers of memory `node` may run at once before they fill its bus.
  BusRoom bus_room(const MemoryUse& use, std::int32_t priority, NodeIndex node) const noexcept;

  /// `worker` is charged with `task`, seen as `view` when the machine was as in `load`, and links with its copies. Sets
  /// `TaskExtra::placed`.
  void charge(Task& task, unsigned worker, const TaskView& view, const LoadView& load);
  /// `worker`, which was charged with the task of `placed`, no longer is. True: memory-bound tasks may run now which
  /// waited.
  bool discharge(const PlacedTask& placed, unsigned worker, std::int64_t now_ns);
  /// `placed.worker` is charged with its task instead of `from`; both are CPU workers of one memory.
  void move(const PlacedTask& placed, unsigned from, std::int64_t now_ns);

  /// How often a load has changed, or how memory is used. Time passes, and copies end, without a change.
  std::uint64_t changes() const noexcept { return changes_; }
  void note_change() noexcept { ++changes_; }
  /// The sums agree; `tasks` says how many tasks each worker has.
  bool check_invariants(std::span<const std::uint32_t> tasks) const;

 private:
  using Sum = SumsByPriority::Sum;
  struct Load {
    std::int64_t since_ns = 0;  ///< when it began with the first of its tasks
    Sum all;
    SumsByPriority by_priority;  ///< empty unless `by_priority_`
  };
  struct Rates {
    double alone, loaded, beside_messages;  ///< in bytes per ns; the latter two 0: not known
  };

  void add(Load& load, const PlacedTask& placed);
  void remove(Load& load, const PlacedTask& placed);
  std::int64_t free_ns(const Load& load, std::int32_t priority, std::int64_t now_ns) const noexcept;
  void look_at_links(std::int64_t now_ns);
  void look_at_memory();

  const Machine& machine_;
  const bool by_priority_;
  std::vector<Load> loads_;  ///< by worker
  std::vector<LinkLoad> links_;
  bool knows_loaded_links_ = false;  ///< the rate of some link under load is known
  std::unique_ptr<MemoryLoad> memory_;
  const MemoryGate* gate_ = nullptr;  ///< set where `memory_` is
  std::vector<Rates> rates_;          ///< of `links_` beside no kernels, if `memory_` is set
  std::vector<WorkerLoad> views_;
  std::uint64_t changes_ = 0;
  MessageCounter messages_;
};

}  // namespace tandem::runtime
