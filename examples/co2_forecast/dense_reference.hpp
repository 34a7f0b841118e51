// examples/co2_forecast/dense_reference.hpp: the same regression by LAPACK on whole matrices, for tests to compare.
#pragma once

#include <lapacke.h>

#include <cmath>
#include <numbers>
#include <optional>
#include <span>
#include <vector>

#include "covariance.hpp"

namespace co2_forecast::dense_reference {

/// What Algorithm 2.1 of Rasmussen and Williams (2006) returns, and the gradient of their equation 5.9.
struct Regression {
  double log_marginal_likelihood = 0;
  Gradient gradient{};
  std::vector<double> mean;      ///< at the test times, of y - mean(y)
  std::vector<double> variance;  ///< of a measurement at the test times
};

inline std::optional<Regression> regress(const Hyperparameters& theta, const TimeAxis& train, std::span<const double> y,
                                         const TimeAxis& test) {
  const auto n = static_cast<lapack_int>(train.size()), m = static_cast<lapack_int>(test.size());
  const std::size_t rows = train.size();
  std::vector<double> l(rows * rows), cross(rows * test.size()), alpha(y.begin(), y.end());
  fill_covariance(theta, train.all(), train.all(), {l.data(), rows, rows, rows});
  add_white_noise(theta, {l.data(), rows, rows, rows});
  fill_covariance(theta, train.all(), test.all(), {cross.data(), rows, test.size(), rows});
  if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', n, l.data(), n) != 0) return std::nullopt;
  LAPACKE_dpotrs(LAPACK_COL_MAJOR, 'L', n, 1, l.data(), n, alpha.data(), n);

  Regression result;
  for (std::size_t i = 0; i < rows; ++i) {
    result.log_marginal_likelihood -=
        0.5 * y[i] * alpha[i] + std::log(l[i + i * rows]) + 0.5 * std::log(2 * std::numbers::pi);
  }
  for (std::size_t j = 0; j < test.size(); ++j) {
    double mean = 0;
    for (std::size_t i = 0; i < rows; ++i) mean += cross[i + j * rows] * alpha[i];
    result.mean.push_back(mean);
  }
  LAPACKE_dtrtrs(LAPACK_COL_MAJOR, 'L', 'N', 'N', n, m, l.data(), n, cross.data(), n);
  for (std::size_t j = 0; j < test.size(); ++j) {
    double variance = measurement_variance(theta);
    for (std::size_t i = 0; i < rows; ++i) variance -= cross[i + j * rows] * cross[i + j * rows];
    result.variance.push_back(variance);
  }

  LAPACKE_dpotri(LAPACK_COL_MAJOR, 'L', n, l.data(), n);
  for (std::size_t j = 0; j < rows; ++j) {
    for (std::size_t i = j; i < rows; ++i) {
      l[i + j * rows] = l[j + i * rows] = alpha[i] * alpha[j] - l[i + j * rows];
    }
  }
  const tandem::MatrixView<const double> weights{l.data(), rows, rows, rows};
  add_weighted_derivatives(theta, train.all(), train.all(), weights, 0.5, result.gradient);
  add_weighted_white_derivative(theta, weights, 0.5, result.gradient);
  return result;
}

}  // namespace co2_forecast::dense_reference
