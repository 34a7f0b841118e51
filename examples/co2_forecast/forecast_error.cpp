// examples/co2_forecast/forecast_error.cpp: the sums behind ForecastError.
#include "forecast_error.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tandem/base/assert.hpp"

namespace co2_forecast {

ForecastError forecast_error(std::span<const double> mean_ppm, std::span<const double> deviation_ppm,
                             std::span<const double> measured_ppm) {
  TANDEM_ASSERT(mean_ppm.size() == measured_ppm.size() && deviation_ppm.size() == measured_ppm.size());
  ForecastError result{.count = measured_ppm.size()};
  if (result.count == 0) return result;

  double sum = 0, sum_of_squares = 0, log_loss = 0;
  std::size_t inside_count = 0;
  for (std::size_t i = 0; i < result.count; ++i) {
    const double error = mean_ppm[i] - measured_ppm[i];
    const double z = error / deviation_ppm[i];
    sum += error;
    sum_of_squares += error * error;
    log_loss += 0.5 * (std::log(2 * std::numbers::pi * deviation_ppm[i] * deviation_ppm[i]) + z * z);
    inside_count += std::abs(z) <= deviations_of_95_percent;
    result.largest_ppm = std::max(result.largest_ppm, std::abs(error));
  }
  const auto count = static_cast<double>(result.count);
  result.root_mean_square_ppm = std::sqrt(sum_of_squares / count);
  result.mean_ppm = sum / count;
  result.coverage_95_percent = 100 * static_cast<double>(inside_count) / count;
  result.mean_log_loss_nats = log_loss / count;
  return result;
}

}  // namespace co2_forecast
