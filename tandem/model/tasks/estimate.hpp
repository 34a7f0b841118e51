// tandem/model/tasks/estimate.hpp: an expected duration, and its uncertainty.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tandem::model {

/// An estimate by a law is known when its deviation is at most this part of its mean.
inline constexpr double kKnownDeviation = 0.5;

/// A duration that has not been measured yet. A value.
struct Estimate {
  double mean_ns = 0;
  /// Standard deviation of one duration around `mean_ns`; it contains the uncertainty of the mean itself.
  double deviation_ns = 0;
  std::uint64_t samples = 0;  ///< durations that it rests on
  /// Of a size that was not measured: standard deviation of the mean, as a law gives it. `deviation_ns` contains it.
  double law_error_ns = 0;
  double beyond = 1;  ///< how many times larger or smaller than the measured ones that size is; 1: it lies among them
  bool known = false;         ///< enough was measured to decide by it; false: `mean_ns` may be anything

  /// Confidence from 0 (nothing is known) to 1: the part of the mean that remains after two standard errors are
  /// subtracted.
  double confidence() const noexcept {
    if (samples == 0 || mean_ns <= 0) return 0;
    const double error = deviation_ns / std::sqrt(static_cast<double>(samples));
    return std::max(0.0, 1 - 2 * error / mean_ns);
  }
};

}  // namespace tandem::model
