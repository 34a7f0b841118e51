// examples/co2_forecast/forecast_error_test.cpp: the measures of a forecast on cases small enough for a pencil.
#include "forecast_error.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numbers>

namespace co2_forecast::forecast_error_test {
namespace {

TEST(ForecastError, IsForecastMinusMeasurement) {
  const std::array mean{351.0, 352.0, 350.0, 349.0}, deviation{1.0, 1.0, 1.0, 1.0},
      measured{350.0, 350.0, 350.0, 350.0};
  const auto error = forecast_error(mean, deviation, measured);
  EXPECT_EQ(error.count, 4u);
  EXPECT_DOUBLE_EQ(error.mean_ppm, 0.5);
  EXPECT_DOUBLE_EQ(error.root_mean_square_ppm, std::sqrt(6.0 / 4));
  EXPECT_DOUBLE_EQ(error.largest_ppm, 2);
  EXPECT_DOUBLE_EQ(error.coverage_95_percent, 75) << "2 ppm is outside 1.96 deviations";
  EXPECT_DOUBLE_EQ(error.mean_log_loss_nats, 0.5 * std::log(2 * std::numbers::pi) + 0.5 * 6 / 4);
}

TEST(ForecastError, OfNothingIsNothing) {
  const auto error = forecast_error({}, {}, {});
  EXPECT_EQ(error.count, 0u);
  EXPECT_EQ(error.root_mean_square_ppm, 0);
}

}  // namespace
}  // namespace co2_forecast::forecast_error_test
