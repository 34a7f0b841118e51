// examples/co2_forecast/covariance_test.cpp: the block loops against the written formula, derivatives against
// differences.
#include "covariance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace co2_forecast::covariance_test {
namespace {

/// k(t, t') as the header of covariance.hpp writes it, element by element, without the white part.
double covariance_as_written(const Hyperparameters& h, double t, double u) {
  const double d = t - u;
  const auto rbf = [d](double length) { return std::exp(-d * d / (2 * length * length)); };
  const double sine = std::sin(std::numbers::pi * d);
  return std::pow(h.trend_amplitude_ppm, 2) * rbf(h.trend_length_years) +
         std::pow(h.season_amplitude_ppm, 2) * rbf(h.season_decay_years) *
             std::exp(-2 * sine * sine / (h.season_smoothness * h.season_smoothness)) +
         std::pow(h.medium_amplitude_ppm, 2) *
             std::pow(1 + d * d / (2 * h.medium_shape * h.medium_length_years * h.medium_length_years),
                      -h.medium_shape) +
         std::pow(h.correlated_noise_ppm, 2) * rbf(h.correlated_noise_length_years);
}

/// Weekly times over some forty years, with a gap.
std::vector<double> some_times(std::size_t count, double first) {
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t gap_days = i > count / 2 ? 900 : 0;
    times.push_back(first + static_cast<double>(7 * i + gap_days) / 365.25);
  }
  return times;
}

TEST(Covariance, ABlockEqualsTheFormulaToRounding) {
  const Hyperparameters theta;
  const auto t = some_times(301, 1958.24), u = some_times(37, 1959.0);
  const TimeAxis rows(t), cols(u);
  const std::size_t ld = 310;
  std::vector<double> storage(ld * u.size(), -1);
  fill_covariance(theta, rows.all(), cols.all(), {storage.data(), t.size(), u.size(), ld});
  const double tolerance = 8 * std::numeric_limits<double>::epsilon() * measurement_variance(theta);
  for (std::size_t j = 0; j < u.size(); ++j) {
    for (std::size_t i = 0; i < t.size(); ++i) {
      EXPECT_NEAR(storage[i + j * ld], covariance_as_written(theta, t[i], u[j]), tolerance) << i << ' ' << j;
    }
    EXPECT_EQ(storage[t.size() + j * ld], -1) << "written outside the block";
  }
}

TEST(Covariance, TheShapesOfThePartsAreExactAtTheirOwnScale) {
  Hyperparameters theta;
  theta.trend_amplitude_ppm = 1e-8;  // the trend's magnitude would hide the digits of the rest
  const auto t = some_times(500, 1958.24);
  const TimeAxis axis(t);
  std::vector<double> column(t.size());
  fill_covariance(theta, axis.all(), axis.slice(3, 1), {column.data(), t.size(), 1, t.size()});
  for (std::size_t i = 0; i < t.size(); ++i)
    EXPECT_NEAR(column[i], covariance_as_written(theta, t[i], t[3]), 5e-14) << i;
}

TEST(Covariance, WhiteNoiseStandsOnTheDiagonalOnly) {
  const Hyperparameters theta;
  const TimeAxis axis(some_times(5, 1990));
  std::vector<double> plain(25), noisy(25);
  fill_covariance(theta, axis.all(), axis.all(), {plain.data(), 5, 5, 5});
  noisy = plain;
  add_white_noise(theta, {noisy.data(), 5, 5, 5});
  for (std::size_t i = 0; i < 25; ++i) {
    EXPECT_DOUBLE_EQ(noisy[i], plain[i] + (i % 6 == 0 ? theta.white_noise_ppm * theta.white_noise_ppm : 0));
  }
  EXPECT_NEAR(noisy[0], measurement_variance(theta), 1e-11);
}

TEST(Covariance, DerivativesEqualCentralDifferences) {
  const auto t = some_times(60, 1960), u = some_times(40, 1961.3);
  const TimeAxis rows(t), cols(u);
  std::vector<double> weights(t.size() * u.size());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(static_cast<double>(i));
  const tandem::MatrixView<const double> w{weights.data(), t.size(), u.size(), t.size()};

  const auto weighted_sum = [&](const Hyperparameters& theta) {
    std::vector<double> block(weights.size());
    const tandem::MatrixView<double> view{block.data(), t.size(), u.size(), t.size()};
    fill_covariance(theta, rows.all(), cols.all(), view);
    add_white_noise(theta, view);
    long double sum = 0;
    for (std::size_t i = 0; i < block.size(); ++i) sum += static_cast<long double>(weights[i]) * block[i];
    return static_cast<double>(sum);
  };

  const Hyperparameters theta;
  Gradient gradient{};
  add_weighted_derivatives(theta, rows.all(), cols.all(), w, 1.0, gradient);
  add_weighted_white_derivative(theta, w, 1.0, gradient);
  for (std::size_t p = 0; p < hyperparameter_count; ++p) {
    const auto member = hyperparameter_fields[p].member;
    const double step = 1e-5;
    Hyperparameters above = theta, below = theta;
    above.*member *= std::exp(step);
    below.*member *= std::exp(-step);
    const double difference = (weighted_sum(above) - weighted_sum(below)) / (2 * step);
    EXPECT_NEAR(gradient[p], difference, 1e-6 * std::max(1.0, std::abs(difference))) << hyperparameter_fields[p].name;
  }
}

TEST(Covariance, DefaultsLieWithinTheBoundsOfTheFit) {
  const Hyperparameters theta;
  for (const auto& field : hyperparameter_fields) {
    EXPECT_LT(field.lower, theta.*field.member) << field.name;
    EXPECT_GT(field.upper, theta.*field.member) << field.name;
  }
}

}  // namespace
}  // namespace co2_forecast::covariance_test
