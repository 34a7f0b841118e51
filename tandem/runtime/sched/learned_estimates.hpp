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

/// Durations of the kernels of this run, by codelet, footprint of the data and kind of worker: a `model::History` each,
/// so outliers change nothing, and a change of speed is followed.
///
/// The first kernel does not count, since it often loads code or warms caches. `kTrials` further ones make an estimate
/// known.
///
/// The `kMostFootprints` that ran last are kept (24 MiB), so that a program with ever new shapes learns what it runs
/// now.
///
/// What `given` estimates already know is taken from them, and they are told of all kernels.
///
/// Threads: any.
class LearnedEstimates final : public Estimates {
 public:
  static constexpr unsigned kTrials = 2;
  static constexpr std::size_t kMostFootprints = 1U << 16;

  /// `given` outlives this; null: none.
  explicit LearnedEstimates(Estimates* given = nullptr) : given_(given) {}

  Estimate expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind) const override;
  void add(std::string_view codelet, model::Footprint footprint, DeviceKind kind, double duration_ns) override;
  /// As `add`, under the footprint of a class of tasks; `given` estimates are not told.
  void add_class(std::string_view codelet, model::Footprint footprint, DeviceKind kind, double duration_ns);
  /// Number of footprints that are kept. For tests.
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
  base::LruTable<Learned> learned_{kMostFootprints};  ///< by a hash of codelet, footprint and kind
};

}  // namespace tandem::runtime
