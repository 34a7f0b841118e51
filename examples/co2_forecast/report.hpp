// examples/co2_forecast/report.hpp: what came out, as a table for people, as JSON for programs, and as CSV files for
// pictures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "experiment.hpp"
#include "fit.hpp"
#include "forecast_error.hpp"
#include "gaussian_process.hpp"
#include "options.hpp"
#include "tandem/base/result.hpp"

namespace co2_forecast {

/// What the run cost.
struct Cost {
  double seconds = 0;          ///< from the first submit to the end of the last task
  std::size_t task_count = 0;
  double flop_count = 0;       ///< of the linear algebra, as LAPACK counts; the covariance function is not in it
  std::size_t worker_count = 0;
};

/// All results that the report shows.
struct Report {
  Options options;
  std::size_t missing_count = 0;
  Experiment experiment;
  std::optional<FitOutcome> fit;
  Hyperparameters theta;  ///< those that were used
  Regression regression;
  ForecastError error;
  Cost cost;
};

/// One row of the worker timeline.
struct TimelineRow {
  std::size_t worker = 0;
  std::string codelet;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t task = 0;
};

/// The table, with a line end.
std::string text_of(const Report& report);

/// One JSON object: `benchmark` "co2_forecast", `hyperparameters`, and `results`, a list of {name, value, unit}.
/// Numbers keep all their digits.
std::string json_of(const Report& report);

/// The defaults beside what was found.
std::string text_of_fit(const FitOutcome& outcome);

/// Writes forecast.csv, timeline.csv and result.json into `folder`, which it makes. Error `io` names the file.
tandem::base::Result<void> write_files(const Report& report, const std::vector<TimelineRow>& timeline,
                                       const std::filesystem::path& folder);

}  // namespace co2_forecast
