// tandem/model/tasks/power_law.hpp: durations as a s^b + c of the size s, for sizes that were not measured.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "tandem/model/tasks/estimate.hpp"

namespace tandem::model {

/// What is known at one size: the estimate of its history.
struct SizePoint {
  double size = 0;  ///< at least 1
  Estimate duration;
};

/// y(s) = a s^b + c with a, c >= 0 and 0.2 <= b <= 4.
///
/// Fit. With t = s / s_max, errors e_i of the means (at least 1 % of them, so that no size rules all others) and the
/// expectation b = 1 +- 1, which decides only where the sizes do not,
///
///   minimise over b:  min over a, c >= 0 of  sum_i ((a t_i^b + c - y_i) / e_i)^2  +  (b - 1)^2
///
/// The inner problem is linear and solved exactly, the outer one by a grid and golden section. The uncertainty is that
/// of weighted least squares, linearised at the solution: C = (J^T W J)^-1, times chi^2 / (n - 3) where the law does
/// not describe the sizes within their errors. A prediction's variance is g^T C g, g being the gradient of y, plus that
/// of a single duration. So it grows outside the measured sizes.
///
/// A value; immutable.
class PowerLaw {
 public:
  /// Fits at least three sizes with known durations, the largest at least twice the least; else empty. Some 20 us for 8
  /// sizes.
  static std::optional<PowerLaw> fit(std::span<const SizePoint> points);

  double factor() const noexcept { return a_; }    ///< a, in ns at the largest measured size, for `scale()`
  double exponent() const noexcept { return b_; }  ///< b
  double constant_ns() const noexcept { return c_; }  ///< c
  double scale() const noexcept { return scale_; }    ///< y(s) = factor() (s / scale())^exponent() + constant_ns()

  double mean_ns(double size) const noexcept;
  /// The estimate for a size of at least 0; known if the deviation is at most half of the mean.
  Estimate estimate(double size) const noexcept;

 private:
  PowerLaw() = default;

  double a_ = 0, b_ = 1, c_ = 0, scale_ = 1;
  double least_ = 1;  ///< measured size; the largest is `scale_`
  std::array<std::array<double, 3>, 3> covariance_{};  ///< of a, b, c
  double noise_ = 0;  ///< deviation of a single duration, relative to its mean
  std::uint64_t samples_ = 0;
};

}  // namespace tandem::model
