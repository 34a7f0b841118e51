// tandem/model/tasks/linear_model.hpp: durations that depend on several parameters of a task.
#pragma once

#include <array>
#include <span>

#include "tandem/model/tasks/estimate.hpp"

namespace tandem::model {

/// How parameters p_1 ... p_k make a duration.
enum class LinearForm {
  sum,      ///< y = b_0 + b_1 p_1 + ... + b_k p_k
  product,  ///< y = exp(b_0) p_1^b_1 ... p_k^b_k, for positive parameters
};

/// Least squares of relative errors, learnt one duration at a time. With rows x = (1, p_1, ..., p_k) / y and target 1
/// for a sum, or x = (1, ln p_1, ..., ln p_k) and target ln y for a product,
///
///   A <- f A + w x x^T,   r <- f r + w x target,   b = (A + ridge)^-1 r
///
/// where f = 0.96 lets old durations decay, and the ridge is tiny. A duration whose error e is beyond five times the
/// usual error s gets the weight w = (5 s / e)^2. Repeated errors raise s by at most a third each time, so an accident
/// weighs next to nothing, while a machine that has changed is learnt. The variance of a prediction is s^2 (1 + x^T (A
/// + ridge)^-1 x).
///
/// A value of constant size; not thread-safe. An update costs k^2 multiplications, and a solution of k + 1 equations
/// once errors can be judged.
class LinearModel {
 public:
  static constexpr unsigned kMaxParameters = 7;

  /// `parameters` is at most `kMaxParameters`.
  LinearModel(LinearForm form, unsigned parameters);

  /// Adds a duration with its parameters, as many as the model has. Ignored: a duration or a parameter that is not
  /// finite, a duration that is not positive, a parameter of a product that is not.
  void add(std::span<const double> parameters, double ns) noexcept;
  /// The estimate; known from 2 (k + 1) durations on, if the deviation is at most half of the mean.
  Estimate estimate(std::span<const double> parameters) const noexcept;
  /// b_0 ... b_k; the parameters from `count` on are 0.
  std::array<double, kMaxParameters + 1> coefficients() const noexcept;

 private:
  static constexpr unsigned kMax = kMaxParameters + 1;
  using Row = std::array<double, kMax>;
  using Matrix = std::array<Row, kMax>;

  bool make_row(std::span<const double> parameters, Row& row) const noexcept;
  Matrix factor() const noexcept;
  Row solve(const Matrix& factor, Row right) const noexcept;

  LinearForm form_;
  unsigned count_;        ///< coefficients
  Matrix products_{};     ///< A, of scaled parameters
  Row sums_{};            ///< r
  Row scales_{};          ///< of a sum: parameters are divided by it; 0: none was seen
  double usual_error_ = 0.25;  ///< s
  std::uint64_t samples_ = 0;
};

}  // namespace tandem::model
