// tandem/model/energy/power_model.cpp: the normal equations with their prior, and their solution.
#include "tandem/model/energy/power_model.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/model/cholesky.hpp"

namespace tandem::model {
namespace {

/// Factorises a matrix that is positive definite but for rounding.
void factor_certainly(std::vector<double>& matrix, std::size_t size) { factor(matrix, size, 1e-300); }

constexpr double kSpread = 0.5;        ///< relative spread of codelets around their common power
constexpr double kLeastNoise = 0.01;   ///< of the energy of a mean interval
constexpr double kFixed = 1e12;        ///< holds a power at 0

}  // namespace

void PowerModel::add(double joules, double seconds, std::span<const Busy> busy) {
  if (!(seconds > 0)) return;
  const double weight = 1 / seconds;
  with_joules_[0] += joules;
  at(0, 0) += seconds;
  joules_squared_ += joules * joules * weight;
  for (const Busy& one : busy) {
    TANDEM_ASSERT(one.codelet < kMostCodelets);
    if (busy_.size() <= one.codelet) busy_.resize(one.codelet + 1);
    busy_[one.codelet] += one.seconds;
    const std::size_t i = one.codelet + 1;
    with_joules_[i] += one.seconds * joules * weight;
    at(i, 0) += one.seconds;
    at(0, i) += one.seconds;
    for (const Busy& other : busy) at(i, other.codelet + 1) += one.seconds * other.seconds * weight;
  }
  joules_ += joules;
  seconds_ += seconds;
  ++intervals_;
}

/// The weighted sum of squares that `powers` (idle first) leave.
double PowerModel::remainder(std::span<const double> powers) const {
  double sum = joules_squared_;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    sum -= 2 * powers[i] * with_joules_[i];
    for (std::size_t j = 0; j < powers.size(); ++j) sum += powers[i] * at(i, j) * powers[j];
  }
  return sum;
}

PowerModel::Fit PowerModel::fit() const {
  const std::size_t codelets = busy_.size(), known = codelets + 1, size = known + 1;  // the last unknown is m
  Fit result;
  result.codelets.resize(codelets);
  if (intervals_ == 0 || !(joules_ > 0)) return result;
  double busy = 0;
  for (const double seconds : busy_) busy += seconds;
  const double mean_watts = joules_ / seconds_, most_watts = busy > 0 ? joules_ / busy : mean_watts;
  // s^2, in W^2 s
  const double least_noise = std::pow(kLeastNoise * mean_watts, 2) * seconds_ / static_cast<double>(intervals_);
  double noise = least_noise, spread = kSpread * most_watts;
  std::vector<bool> is_fixed(size);
  std::vector<double> powers(size);
  std::vector<double> free_matrix;  // nothing held at 0: for errors
  for (int round = 0; round < 8; ++round) {
    std::vector<double> matrix(size * size), right(size);
    for (std::size_t i = 0; i < known; ++i) {
      right[i] = with_joules_[i] / noise;
      for (std::size_t j = 0; j < known; ++j) matrix[i * size + j] = at(i, j) / noise;
    }
    matrix[0] += 1 / (mean_watts * mean_watts);
    const double tie = 1 / (spread * spread);
    matrix[known * size + known] += 1e-6 / (most_watts * most_watts);
    for (std::size_t i = 1; i < known; ++i) {
      matrix[i * size + i] += tie;
      matrix[known * size + known] += tie;
      matrix[i * size + known] -= tie;
      matrix[known * size + i] -= tie;
    }
    free_matrix = matrix;
    for (std::size_t i = 0; i < size; ++i)
      if (is_fixed[i]) matrix[i * size + i] += kFixed * (matrix[i * size + i] + tie);
    factor_certainly(matrix, size);
    solve(matrix, size, right);
    powers = std::move(right);
    bool has_changed = false;
    for (std::size_t i = 0; i < size; ++i)
      if (powers[i] < 0 && !is_fixed[i]) has_changed = is_fixed[i] = true;
    const auto freedom = static_cast<double>(intervals_) - static_cast<double>(known);
    if (freedom > 0) noise = std::max(least_noise, remainder(std::span(powers).first(known)) / freedom);
    spread = std::max(kSpread * powers[known], 0.05 * most_watts);
    if (round >= 3 && !has_changed) break;
  }
  factor_certainly(free_matrix, size);
  const auto power = [&](std::size_t i, double seconds) {
    std::vector<double> column(size);  // of the inverse
    column[i] = 1;
    solve(free_matrix, size, column);
    return Watts{std::max(0.0, powers[i]), std::sqrt(column[i]), seconds};
  };
  result.idle = power(0, seconds_);
  for (std::size_t k = 0; k < codelets; ++k)
    if (busy_[k] > 0) result.codelets[k] = power(k + 1, busy_[k]);
  return result;
}

Watts combined(const Watts& a, const Watts& b) {
  if (!(a.seconds > 0)) return b;
  if (!(b.seconds > 0)) return a;
  const double least = 1e-3 * std::max(a.watts, b.watts) + 1e-9;
  const double of_a = std::pow(std::max(a.error, least), -2), of_b = std::pow(std::max(b.error, least), -2);
  return {(a.watts * of_a + b.watts * of_b) / (of_a + of_b), 1 / std::sqrt(of_a + of_b), a.seconds + b.seconds};
}

}  // namespace tandem::model
