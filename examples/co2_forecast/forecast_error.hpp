// examples/co2_forecast/forecast_error.hpp: how far a forecast with error bars was from what was then measured.
#pragma once

#include <cstddef>
#include <span>

namespace co2_forecast {

/// A normal variable lies within this many standard deviations of its mean with probability 0.95.
inline constexpr double deviations_of_95_percent = 1.959963984540054;

/// Errors are forecast minus measurement. All zero when nothing was held out.
struct ForecastError {
  std::size_t count = 0;
  double root_mean_square_ppm = 0;
  double mean_ppm = 0;
  double largest_ppm = 0;          ///< in absolute value
  /// The percentage of measurements inside mean +- 1.96 standard deviations; 95 is the aim.
  double coverage_95_percent = 0;
  /// Rasmussen and Williams (2006), equation 2.34: minus the mean log density that the forecast gives to a measurement.
  /// In nats; smaller is better; it punishes bars that are too narrow as well as bars that are too wide.
  double mean_log_loss_nats = 0;
};

/// Three spans of one length, in ppm; deviations are positive.
ForecastError forecast_error(std::span<const double> mean_ppm, std::span<const double> deviation_ppm,
                             std::span<const double> measured_ppm);

}  // namespace co2_forecast
