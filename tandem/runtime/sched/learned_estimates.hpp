// tandem/runtime/sched/learned_estimates.hpp: estimates from the kernels of this run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "tandem/base/spin_lock.hpp"
#include "tandem/runtime/sched/estimates.hpp"

namespace tandem::runtime {

/// Mean and deviation of the kernels that have run, by codelet, footprint of the data and kind of worker.
///
/// The first kernel does not count, since it often loads code or warms caches. `kTrials` further ones make an estimate known. The last
/// `kMemory` kernels or so decide: the weight of older ones decays, so that a change of speed is followed. One kernel that takes
/// `kAccident` times the mean is an accident and counts only if the next one does, too.
///
/// What `given` estimates know already is taken from there, and they hear of all kernels, too.
///
/// Threads: any.
class LearnedEstimates final : public Estimates {
 public:
  static constexpr unsigned kTrials = 2;
  static constexpr unsigned kMemory = 20;
  static constexpr double kAccident = 5;
  static constexpr std::size_t kMostFootprints = 1U << 16;  ///< further ones are not learnt

  /// `given` outlives this; null: there are none.
  explicit LearnedEstimates(Estimates* given = nullptr) : given_(given) {}

  Estimate expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind) const override;
  void add(std::string_view codelet, model::Footprint footprint, DeviceKind kind, double duration_ns) override;

 private:
  struct Learned {
    unsigned count = 0;  ///< without the first one and without accidents
    bool warm = false;   ///< the first one has run
    bool after_accident = false;
    double mean_ns = 0;
    double variance = 0;
  };

  Estimates* const given_;
  mutable base::SpinLock lock_;
  std::unordered_map<std::uint64_t, Learned> learned_;  ///< by a hash of all three
};

}  // namespace tandem::runtime
