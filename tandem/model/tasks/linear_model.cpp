// tandem/model/tasks/linear_model.cpp: weighted recursive least squares by normal equations.
#include "tandem/model/tasks/linear_model.hpp"

#include <algorithm>
#include <cmath>

#include "tandem/base/assert.hpp"

namespace tandem::model {
namespace {

constexpr double kForget = 0.96;
constexpr double kRidge = 1e-6;
constexpr double kErrors = 5;          ///< errors beyond so many usual ones weigh less
constexpr double kLearnError = 0.1;    ///< part of a new error in the usual one
constexpr double kGrowth = 3;          ///< most that an error counts, in usual ones, times `kLearnError`: a third
constexpr double kLeastUsualError = 0.01;

}  // namespace

LinearModel::LinearModel(LinearForm form, unsigned parameters) : form_(form), count_(parameters + 1) {
  TANDEM_ASSERT(parameters <= kMaxParameters);
}

/// Makes the row (1, p_1, ...), scaled, or with logarithms; false: a product has no value there.
bool LinearModel::make_row(std::span<const double> parameters, Row& row) const noexcept {
  TANDEM_ASSERT(parameters.size() + 1 == count_);
  row[0] = 1;
  for (unsigned i = 1; i < count_; ++i) {
    const double value = parameters[i - 1];
    if (!std::isfinite(value) || (form_ == LinearForm::product && value <= 0)) return false;
    row[i] = form_ == LinearForm::product ? std::log(value) : value / (scales_[i] > 0 ? scales_[i] : 1);
  }
  return true;
}

/// The Cholesky factor of A + ridge.
LinearModel::Matrix LinearModel::factor() const noexcept {
  Matrix l{};
  double trace = 0;
  for (unsigned i = 0; i < count_; ++i) trace += products_[i][i];
  for (unsigned i = 0; i < count_; ++i)
    for (unsigned j = 0; j <= i; ++j) {
      double sum = products_[i][j] + (i == j ? kRidge * (trace + kRidge) : 0);
      for (unsigned k = 0; k < j; ++k) sum -= l[i][k] * l[j][k];
      l[i][j] = i == j ? std::sqrt(std::max(sum, kRidge * kRidge * (trace + kRidge))) : sum / l[j][j];
    }
  return l;
}

LinearModel::Row LinearModel::solve(const Matrix& l, Row right) const noexcept {
  for (unsigned i = 0; i < count_; ++i) {
    for (unsigned k = 0; k < i; ++k) right[i] -= l[i][k] * right[k];
    right[i] /= l[i][i];
  }
  for (unsigned i = count_; i-- > 0;) {
    for (unsigned k = i + 1; k < count_; ++k) right[i] -= l[k][i] * right[k];
    right[i] /= l[i][i];
  }
  return right;
}

void LinearModel::add(std::span<const double> parameters, double ns) noexcept {
  if (!(ns > 0) || !std::isfinite(ns)) return;
  if (form_ == LinearForm::sum)
    for (unsigned i = 1; i < count_; ++i)
      if (scales_[i] == 0 && std::isfinite(parameters[i - 1])) scales_[i] = std::abs(parameters[i - 1]);
  Row row;
  if (!make_row(parameters, row)) return;
  const double target = form_ == LinearForm::sum ? 1 : std::log(ns);
  if (form_ == LinearForm::sum)
    for (unsigned i = 0; i < count_; ++i) row[i] /= ns;
  double weight = 1;
  if (samples_ >= 2 * count_) {
    const Row b = solve(factor(), sums_);
    double error = -target;
    for (unsigned i = 0; i < count_; ++i) error += b[i] * row[i];
    error = std::abs(error);
    if (error > kErrors * usual_error_) weight = kErrors * usual_error_ / error * (kErrors * usual_error_ / error);
    usual_error_ = std::max(
        kLeastUsualError, usual_error_ + kLearnError * (std::min(error, (1 + kGrowth) * usual_error_) - usual_error_));
  }
  ++samples_;
  for (unsigned i = 0; i < count_; ++i) {
    for (unsigned j = 0; j < count_; ++j) products_[i][j] = kForget * products_[i][j] + weight * row[i] * row[j];
    sums_[i] = kForget * sums_[i] + weight * row[i] * target;
  }
}

Estimate LinearModel::estimate(std::span<const double> parameters) const noexcept {
  Row row;
  if (samples_ == 0 || !make_row(parameters, row)) return {};
  const Matrix l = factor();
  const Row b = solve(l, sums_);
  double value = 0;
  for (unsigned i = 0; i < count_; ++i) value += b[i] * row[i];
  const double mean = form_ == LinearForm::sum ? value : std::exp(value);
  if (!(mean > 0) || !std::isfinite(mean)) return {.samples = samples_};
  if (form_ == LinearForm::sum)
    for (unsigned i = 0; i < count_; ++i) row[i] /= mean;
  const Row spread = solve(l, row);
  double reach = 1;
  for (unsigned i = 0; i < count_; ++i) reach += row[i] * spread[i];
  const double deviation = mean * usual_error_ * std::sqrt(reach);
  return {.mean_ns = mean, .deviation_ns = deviation, .samples = samples_,
          .known = samples_ >= 2 * count_ && deviation <= kKnownDeviation * mean};
}

std::array<double, LinearModel::kMaxParameters + 1> LinearModel::coefficients() const noexcept {
  Row b = solve(factor(), sums_);
  for (unsigned i = 1; i < count_; ++i)
    if (scales_[i] > 0) b[i] /= scales_[i];
  return b;
}

}  // namespace tandem::model
