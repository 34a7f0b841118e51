// tandem/model/tasks/random_durations.hpp: durations with noise, for tests of models.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "tandem/base/splitmix64.hpp"

namespace tandem::model {

/// Random numbers of one seed.
class RandomDurations {
 public:
  explicit RandomDurations(std::uint64_t seed) : state_(seed) {}

  /// A uniform number from [0, 1).
  double uniform() noexcept { return static_cast<double>(base::splitmix64(state_) >> 11) * 0x1p-53; }
  double between(double low, double high) noexcept { return low + (high - low) * uniform(); }
  double normal() noexcept {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  /// Log-normal around `ns` with this relative deviation: skewed like real durations.
  double around(double ns, double deviation) noexcept { return ns * std::exp(deviation * normal()); }

 private:
  std::uint64_t state_;
};

}  // namespace tandem::model
