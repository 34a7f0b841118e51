// tandem/runtime/sched/placing/ready_kinds.hpp: the kinds of tasks that are ready, arrive or have a worker, and what is
// known of each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tandem/runtime/machine/machine.hpp"
#include "tandem/runtime/sched/contention/memory_load.hpp"
#include "tandem/runtime/sched/estimates.hpp"
#include "tandem/runtime/sched/placing/kind_numbers.hpp"
#include "tandem/runtime/sched/policies/powers.hpp"
#include "tandem/runtime/sched/policies/pulling_policy.hpp"
#include "tandem/runtime/task/task.hpp"

namespace tandem::runtime {

/// By kind: its workers, what its kernels take and draw on these, and the tasks that workers were given; over all
/// kinds, what the time of each worker is worth.
///
/// Threads: none; `Placer` calls it under its lock.
class ReadyKinds {
 public:
  /// `machine` and `estimates` outlive this.
  ReadyKinds(const Machine& machine, const Estimates& estimates, KindNumbers::Bound bound)
      : machine_(machine),
        estimates_(estimates),
        numbers_(bound) {}
  /// As `Placer::aim_at`.
  void aim_at(Objective objective, const Powers& powers);

  /// `task`, whose data has `footprint`, is one of its kind until `leave`. Returns the number of the kind. `memory`,
  /// unless null, hears of new kinds.
  unsigned join(const Task& task, model::Footprint footprint, MemoryLoad* memory);
  void leave(unsigned number) { numbers_.leave(number); }
  /// One more task of kind `number` has become ready. After some, durations, powers and, if they are `priced`, prices
  /// and parts are found anew.
  void see(unsigned number, bool priced);
  /// Asks the estimates how long tasks of kind `number` take.
  void ask_durations(unsigned number);

  const std::vector<ReadyKind>& all() const noexcept { return kinds_; }
  ReadyKind& operator[](unsigned number) noexcept { return kinds_[number]; }
  const ReadyKind& operator[](unsigned number) const noexcept { return kinds_[number]; }
  /// Whether it is known how long tasks of kind `number` take on all that can run them.
  bool is_known(unsigned number) const noexcept { return is_known_[number]; }
  /// Whether kind `number` is that of many shapes.
  bool is_class(unsigned number) const noexcept { return numbers_.is_class(number); }
  /// Tasks of kind `number`: those that arrive, wait, or have a worker.
  std::uint32_t tasks(unsigned number) const noexcept { return numbers_.tasks(number); }

  std::span<const double> prices() const noexcept { return prices_; }        ///< by worker
  std::span<const KindPart> parts() const noexcept { return parts_; }        ///< by kind of worker
  const EnergyAim* aim() const noexcept { return aim_ ? &*aim_ : nullptr; }  ///< null: time counts alone
  /// How often durations were asked.
  std::uint64_t changes() const noexcept { return changes_; }
  bool check_invariants() const { return numbers_.size() == kinds_.size() && numbers_.check_invariants(); }

 private:
  static constexpr double kMemory = 2'000;  ///< tasks; `ReadyKind::seen` counts about so many of the last ones

  void begin(const Task& task, const KindNumbers::Kind& of, MemoryLoad* memory);
  void ask_powers(ReadyKind& kind);

  const Machine& machine_;
  const Estimates& estimates_;
  KindNumbers numbers_;
  std::vector<ReadyKind> kinds_;
  std::vector<bool> is_known_;
  Objective objective_ = Objective::time;
  const Powers* powers_ = nullptr;
  std::optional<EnergyAim> aim_;
  std::vector<double> prices_;
  std::vector<KindPart> parts_;
  double seen_ = 0;      ///< sum over `kinds_` when prices were set
  double unpriced_ = 0;  ///< tasks that became ready since
  std::uint64_t changes_ = 0;
};

}  // namespace tandem::runtime
