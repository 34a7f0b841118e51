// examples/co2_forecast/experiment.hpp: which weeks are learnt from, and which are forecast and compared.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "measurements.hpp"
#include "tandem/base/result.hpp"

namespace co2_forecast {

/// The calendar years of a forecast. What was measured after `last_year` is left aside.
struct ForecastYears {
  int split_year = 1997;  ///< training ends with the year before
  int last_year = 2001;   ///< the forecast ends with this year
};

/// A week to forecast, with what was measured then.
struct ForecastWeek {
  std::chrono::year_month_day date;
  double time_years = 0;
  std::optional<double> measured_ppm;
};

/// Invariant: `training` is not empty, all its dates are before those of `weeks`, and both increase.
struct Experiment {
  std::vector<Measurement> training;
  double training_mean_ppm = 0;  ///< of `training`; the process models what is left
  std::vector<ForecastWeek> weeks;
  std::size_t held_out_count = 0;  ///< of the weeks, those with a measurement
};

/// Trains on all measurements before the split year. Forecasts every seventh day from the last of them on that lies in
/// the forecast years, and every day in those years on which something was measured. Error `invalid_argument` when
/// nothing is left to train on.
tandem::base::Result<Experiment> make_experiment(const Measurements& measurements, const ForecastYears& years);

}  // namespace co2_forecast
