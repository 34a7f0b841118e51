// examples/co2_forecast/covariance.hpp: how much CO2 at two times has in common, and how that depends on eleven
// hyperparameters.
//
// The covariance function of Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), section 5.4.3.
// With d = t - t' in years and RBF(l) = exp(-d^2 / 2 l^2):
//
//   k(t, t') = theta1^2 RBF(theta2)                                        the rising trend
//            + theta3^2 RBF(theta4) exp(-2 sin^2(pi d) / theta5^2)         the season, whose shape drifts over decades
//            + theta6^2 (1 + d^2 / (2 theta8 theta7^2))^(-theta8)          irregularities of months to years
//            + theta9^2 RBF(theta10) + theta11^2 [t is t']                 noise, correlated over weeks, and white
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "tandem/runtime/data/views.hpp"

namespace co2_forecast {

/// theta1 to theta11. The defaults are those of the book; all are positive.
struct Hyperparameters {
  double trend_amplitude_ppm = 66;
  double trend_length_years = 67;
  double season_amplitude_ppm = 2.4;
  double season_decay_years = 90;
  double season_smoothness = 1.3;  ///< length in units of the sine: small means many harmonics
  double medium_amplitude_ppm = 0.66;
  double medium_length_years = 1.2;
  double medium_shape = 0.78;  ///< of the rational quadratic: large means one length scale only
  double correlated_noise_ppm = 0.18;
  double correlated_noise_length_years = 1.6 / 12;
  double white_noise_ppm = 0.19;
};

/// One of the eleven: its name on the command line, and where the optimiser may go.
struct HyperparameterField {
  std::string_view name;
  std::string_view unit;
  double Hyperparameters::*member;
  double lower;  ///< bound for fitting
  double upper;  ///< bound for fitting
};

/// The eleven in the book's order, which is also the order of gradients. The bounds keep each part in its role: noise
/// correlated over less than a week (0.0192 years) would be white noise by another name.
inline constexpr std::array<HyperparameterField, 11> hyperparameter_fields{{
    {"trend_amplitude", "ppm", &Hyperparameters::trend_amplitude_ppm, 1, 1000},
    {"trend_length", "years", &Hyperparameters::trend_length_years, 5, 1000},
    {"season_amplitude", "ppm", &Hyperparameters::season_amplitude_ppm, 0.1, 50},
    {"season_decay", "years", &Hyperparameters::season_decay_years, 5, 1000},
    {"season_smoothness", "", &Hyperparameters::season_smoothness, 0.2, 10},
    {"medium_amplitude", "ppm", &Hyperparameters::medium_amplitude_ppm, 0.02, 20},
    {"medium_length", "years", &Hyperparameters::medium_length_years, 0.1, 50},
    {"medium_shape", "", &Hyperparameters::medium_shape, 0.1, 100},
    {"correlated_noise", "ppm", &Hyperparameters::correlated_noise_ppm, 0.01, 5},
    {"correlated_noise_length", "years", &Hyperparameters::correlated_noise_length_years, 0.02, 1},
    {"white_noise", "ppm", &Hyperparameters::white_noise_ppm, 0.02, 5},
}};

inline constexpr std::size_t hyperparameter_count = hyperparameter_fields.size();

/// The derivative of the log marginal likelihood with respect to the logarithm of each hyperparameter.
using Gradient = std::array<double, hyperparameter_count>;

/// Times as the covariance loops read them: a slice of a TimeAxis. Copying it copies no time.
struct TimeSlice {
  std::span<const double> years;
  std::span<const double> sin_pi_t;
  std::span<const double> cos_pi_t;

  std::size_t size() const noexcept { return years.size(); }
};

/// A list of times with sin(pi t) and cos(pi t), from which sin(pi (t - t')) costs two products instead of a sine per
/// element. Immutable after construction, so any thread may read it; slices live no longer than their axis.
class TimeAxis {
 public:
  explicit TimeAxis(std::vector<double> years);

  std::size_t size() const noexcept { return years_.size(); }
  TimeSlice slice(std::size_t begin, std::size_t count) const;
  TimeSlice all() const { return slice(0, size()); }

 private:
  std::vector<double> years_;
  std::vector<double> sin_pi_t_;
  std::vector<double> cos_pi_t_;
};

/// Fills `block`, rows.size() by cols.size(), with k(t, t') without its white part: the covariance of measurements at
/// two different times. Exact to a few units in the last place of k(0). Thread-safe, as all functions here.
void fill_covariance(const Hyperparameters& theta, TimeSlice rows, TimeSlice cols, tandem::MatrixView<double> block);

/// Adds theta11^2 to the diagonal of `block`: with it, a block on the diagonal of K is the covariance of one set of
/// measurements.
void add_white_noise(const Hyperparameters& theta, tandem::MatrixView<double> block);

/// The variance of one measurement, k(t, t) with all its parts, in ppm^2.
double measurement_variance(const Hyperparameters& theta);

/// Adds to `sums` the eleven sums over i and j of weights(i, j) dk(t_i, t'_j) / d log theta_p, without the white part.
void add_weighted_derivatives(const Hyperparameters& theta, TimeSlice rows, TimeSlice cols,
                              tandem::MatrixView<const double> weights, double scale, Gradient& sums);

/// The same for the white part, whose derivative is 2 theta11^2 on the diagonal and 0 elsewhere.
void add_weighted_white_derivative(const Hyperparameters& theta, tandem::MatrixView<const double> weights, double scale,
                                   Gradient& sums);

}  // namespace co2_forecast
