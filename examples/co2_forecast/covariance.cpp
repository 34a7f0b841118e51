// examples/co2_forecast/covariance.cpp: the covariance function over blocks of times. Four exponentials and a logarithm
// per element make this the part bound by arithmetic other than BLAS, so its loops are written for the vectoriser and
// compiled with -O3 -ffast-math, with which the C library's vector functions (libmvec) are used. Inputs are finite, as
// the reader checked.
#include "covariance.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tandem/base/assert.hpp"

// One machine code per vector width, chosen when the program starts. Sanitizers start after that choice, and break on
// it.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define CO2_FORECAST_FOR_EACH_VECTOR_WIDTH __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CO2_FORECAST_FOR_EACH_VECTOR_WIDTH
#endif

namespace co2_forecast {

namespace {

using tandem::MatrixView;

/// Below this, exp() is under 1e-304: nothing beside the other terms, while denormal results would leave the vector
/// path.
constexpr double smallest_exponent = -700;

inline double vanishing_exp(double exponent) { return std::exp(std::max(exponent, smallest_exponent)); }

constexpr double square(double x) { return x * x; }

/// The constants of k in the form in which the loops use them.
struct Coefficients {
  explicit Coefficients(const Hyperparameters& theta)
      : trend_variance(square(theta.trend_amplitude_ppm)),
        trend_rate(0.5 / square(theta.trend_length_years)),
        season_variance(square(theta.season_amplitude_ppm)),
        season_decay_rate(0.5 / square(theta.season_decay_years)),
        season_sine_rate(2 / square(theta.season_smoothness)),
        medium_variance(square(theta.medium_amplitude_ppm)),
        medium_rate(0.5 / (theta.medium_shape * square(theta.medium_length_years))),
        medium_shape(theta.medium_shape),
        noise_variance(square(theta.correlated_noise_ppm)),
        noise_rate(0.5 / square(theta.correlated_noise_length_years)) {}

  double trend_variance, trend_rate;
  double season_variance, season_decay_rate, season_sine_rate;
  double medium_variance, medium_rate, medium_shape;
  double noise_variance, noise_rate;
};

/// One time t' against which a column of times is taken.
struct Time {
  double years, sin_pi_t, cos_pi_t;
};

/// k(t_i, t') for n times t_i.
CO2_FORECAST_FOR_EACH_VECTOR_WIDTH
void fill_column(const Coefficients& c, const double* __restrict t, const double* __restrict sin_t,
                 const double* __restrict cos_t, std::size_t n, Time other, double* __restrict k) {
  for (std::size_t i = 0; i < n; ++i) {
    const double d2 = square(t[i] - other.years);
    const double sine2 = square(sin_t[i] * other.cos_pi_t - cos_t[i] * other.sin_pi_t);  // sin^2(pi (t - t'))
    const double q = 1 + c.medium_rate * d2;
    k[i] = c.trend_variance * vanishing_exp(-c.trend_rate * d2) +
           c.season_variance * vanishing_exp(-(c.season_decay_rate * d2 + c.season_sine_rate * sine2)) +
           c.medium_variance * vanishing_exp(-c.medium_shape * std::log(q)) +
           c.noise_variance * vanishing_exp(-c.noise_rate * d2);
  }
}

/// The sums over i of w_i k_part(t_i, t') times what the derivative of each part multiplies it by.
struct Moments {
  double trend = 0, trend_d2 = 0;
  double season = 0, season_d2 = 0, season_sine2 = 0;
  double medium = 0, medium_length = 0, medium_shape = 0;
  double noise = 0, noise_d2 = 0;
};

CO2_FORECAST_FOR_EACH_VECTOR_WIDTH
void add_column_moments(const Coefficients& c, const double* __restrict t, const double* __restrict sin_t,
                        const double* __restrict cos_t, std::size_t n, Time other, const double* __restrict w,
                        Moments& moments) {
  Moments m;
  for (std::size_t i = 0; i < n; ++i) {
    const double d2 = square(t[i] - other.years);
    const double sine2 = square(sin_t[i] * other.cos_pi_t - cos_t[i] * other.sin_pi_t);
    const double q = 1 + c.medium_rate * d2;
    const double log_q = std::log(q);
    const double trend = w[i] * vanishing_exp(-c.trend_rate * d2);
    const double season = w[i] * vanishing_exp(-(c.season_decay_rate * d2 + c.season_sine_rate * sine2));
    const double medium = w[i] * vanishing_exp(-c.medium_shape * log_q);
    const double noise = w[i] * vanishing_exp(-c.noise_rate * d2);
    m.trend += trend;
    m.trend_d2 += trend * d2;
    m.season += season;
    m.season_d2 += season * d2;
    m.season_sine2 += season * sine2;
    m.medium += medium;
    m.medium_length += medium * (d2 / q);
    m.medium_shape += medium * ((q - 1) / q - log_q);
    m.noise += noise;
    m.noise_d2 += noise * d2;
  }
  moments.trend += m.trend;
  moments.trend_d2 += m.trend_d2;
  moments.season += m.season;
  moments.season_d2 += m.season_d2;
  moments.season_sine2 += m.season_sine2;
  moments.medium += m.medium;
  moments.medium_length += m.medium_length;
  moments.medium_shape += m.medium_shape;
  moments.noise += m.noise;
  moments.noise_d2 += m.noise_d2;
}

Time time_at(TimeSlice times, std::size_t index) {
  return {times.years[index], times.sin_pi_t[index], times.cos_pi_t[index]};
}

}  // namespace

TimeAxis::TimeAxis(std::vector<double> years)
    : years_(std::move(years)), sin_pi_t_(years_.size()), cos_pi_t_(years_.size()) {
  for (std::size_t i = 0; i < years_.size(); ++i) {
    // Whole years are taken off first, exactly: sin^2(pi (t - t')) has period 1, and a small argument loses no digits.
    const double angle = std::numbers::pi * std::fmod(years_[i], 1.0);
    sin_pi_t_[i] = std::sin(angle);
    cos_pi_t_[i] = std::cos(angle);
  }
}

TimeSlice TimeAxis::slice(std::size_t begin, std::size_t count) const {
  TANDEM_ASSERT(begin <= size() && count <= size() - begin);
  return {std::span(years_).subspan(begin, count), std::span(sin_pi_t_).subspan(begin, count),
          std::span(cos_pi_t_).subspan(begin, count)};
}

void fill_covariance(const Hyperparameters& theta, TimeSlice rows, TimeSlice cols, MatrixView<double> block) {
  TANDEM_ASSERT(block.rows == rows.size() && block.cols == cols.size());
  const Coefficients coefficients(theta);
  for (std::size_t j = 0; j < cols.size(); ++j) {
    fill_column(coefficients, rows.years.data(), rows.sin_pi_t.data(), rows.cos_pi_t.data(), rows.size(),
                time_at(cols, j), block.data + j * block.ld);
  }
}

void add_white_noise(const Hyperparameters& theta, MatrixView<double> block) {
  for (std::size_t i = 0; i < std::min(block.rows, block.cols); ++i) block(i, i) += square(theta.white_noise_ppm);
}

double measurement_variance(const Hyperparameters& theta) {
  return square(theta.trend_amplitude_ppm) + square(theta.season_amplitude_ppm) + square(theta.medium_amplitude_ppm) +
         square(theta.correlated_noise_ppm) + square(theta.white_noise_ppm);
}

void add_weighted_derivatives(const Hyperparameters& theta, TimeSlice rows, TimeSlice cols,
                              MatrixView<const double> weights, double scale, Gradient& sums) {
  TANDEM_ASSERT(weights.rows == rows.size() && weights.cols == cols.size());
  const Coefficients c(theta);
  Moments m;
  for (std::size_t j = 0; j < cols.size(); ++j) {
    add_column_moments(c, rows.years.data(), rows.sin_pi_t.data(), rows.cos_pi_t.data(), rows.size(), time_at(cols, j),
                       weights.data + j * weights.ld, m);
  }
  // With x = log theta: d(theta^2)/dx = 2 theta^2, and d/dx exp(-a d^2 / theta^2) = 2 a d^2 / theta^2 exp(...). For the
  // rational quadratic q^(-alpha), q = 1 + d^2 / (2 alpha l^2): d/d(log l) = q^(-alpha) d^2 / (l^2 q), and
  // d/d(log alpha) = q^(-alpha) alpha ((q - 1) / q - log q).
  sums[0] += scale * 2 * c.trend_variance * m.trend;
  sums[1] += scale * 2 * c.trend_rate * c.trend_variance * m.trend_d2;
  sums[2] += scale * 2 * c.season_variance * m.season;
  sums[3] += scale * 2 * c.season_decay_rate * c.season_variance * m.season_d2;
  sums[4] += scale * 2 * c.season_sine_rate * c.season_variance * m.season_sine2;
  sums[5] += scale * 2 * c.medium_variance * m.medium;
  sums[6] += scale * c.medium_variance * m.medium_length / square(theta.medium_length_years);
  sums[7] += scale * c.medium_variance * c.medium_shape * m.medium_shape;
  sums[8] += scale * 2 * c.noise_variance * m.noise;
  sums[9] += scale * 2 * c.noise_rate * c.noise_variance * m.noise_d2;
}

void add_weighted_white_derivative(const Hyperparameters& theta, MatrixView<const double> weights, double scale,
                                   Gradient& sums) {
  double trace = 0;
  for (std::size_t i = 0; i < std::min(weights.rows, weights.cols); ++i) trace += weights(i, i);
  sums[10] += scale * 2 * square(theta.white_noise_ppm) * trace;
}

}  // namespace co2_forecast
