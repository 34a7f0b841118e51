// examples/co2_forecast/experiment.cpp: splits the measurements, and lays the weekly grid over the years to forecast.
#include "experiment.hpp"

#include <fmt/format.h>

#include <map>

namespace co2_forecast {

using namespace std::chrono;
using tandem::base::Error;
using tandem::base::ErrorCode;
using tandem::base::Result;

Result<Experiment> make_experiment(const Measurements& measurements, const ForecastYears& years) {
  Experiment experiment;
  std::map<sys_days, std::optional<double>> forecast_days;
  for (const Measurement& row : measurements.rows) {
    if (row.date.year() < year{years.split_year}) {
      experiment.training.push_back(row);
      experiment.training_mean_ppm += row.co2_ppm;
    } else if (row.date.year() <= year{years.last_year}) {
      forecast_days[row.date] = row.co2_ppm;
      ++experiment.held_out_count;
    }
  }
  if (experiment.training.empty()) {
    return Error{ErrorCode::invalid_argument,
                 measurements.rows.empty()
                     ? "the data hold no measurement"
                     : fmt::format("nothing was measured before {}: the data begin on {}; choose a later --split-year",
                                   years.split_year, to_string(measurements.rows.front().date))};
  }
  experiment.training_mean_ppm /= static_cast<double>(experiment.training.size());

  const sys_days first_day = year{years.split_year} / January / 1, last_day = year{years.last_year} / December / 31;
  for (sys_days day = experiment.training.back().date; day <= last_day; day += days{7}) {
    if (day >= first_day) forecast_days.try_emplace(day, std::nullopt);
  }
  for (const auto& [day, measured] : forecast_days) experiment.weeks.push_back({day, years_of(day), measured});
  return experiment;
}

}  // namespace co2_forecast
