// tandem/runtime/sched/learned_estimates.hpp: estimates from the kernels of this run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "tandem/base/lru_table.hpp"
#include "tandem/base/spin_lock.hpp"
#include "tandem/model/tasks/history.hpp"
#include "tandem/runtime/sched/estimates.hpp"

namespace tandem::runtime {

/// What the kernels of this run took, by codelet, footprint of the data and kind of worker: a `model::History` each, so accidents change nothing,
/// and a change of speed is followed.
///
/// The first kernel does not count, since it often loads code or warms caches. `kTrials` further ones make an estimate known.
///
/// The `kMostFootprints` that ran last are kept (24 MiB), so that a program with ever new shapes learns what it runs now.
///
/// What `given` estimates know already is taken from there, and they hear of all kernels, too.
///
/// Threads: any.
class LearnedEstimates final : public Estimates {
 public:
  static constexpr unsigned kTrials = 2;
  static constexpr std::size_t kMostFootprints = 1U << 16;

  /// `given` outlives this; null: there are none.
  explicit LearnedEstimates(Estimates* given = nullptr) : given_(given) {}

  Estimate expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind) const override;
  void add(std::string_view codelet, model::Footprint footprint, DeviceKind kind, double duration_ns) override;
  /// The same under the footprint of a class of tasks, besides `add` under the task's own: `given` estimates do not hear of it.
  void add_class(std::string_view codelet, model::Footprint footprint, DeviceKind kind, double duration_ns);
  /// Footprints that are kept. For tests.
  std::size_t size() const {
    const std::lock_guard guard(lock_);
    return learned_.size();
  }

 private:
  struct Learned {
    bool is_warm = false;  ///< the first one has run
    model::History history;
  };

  Estimates* const given_;
  mutable base::SpinLock lock_;
  base::LruTable<Learned> learned_{kMostFootprints};  ///< by a hash of all three
};

}  // namespace tandem::runtime
