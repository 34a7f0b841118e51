// examples/co2_forecast/main.cpp: reads the measurements, fits if asked to, forecasts the held-out years, and reports
// the error.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gaussian_process.hpp"
#include "measurements.hpp"
#include "options.hpp"
#include "pictures.hpp"
#include "report.hpp"
#include "tandem/linalg/blas_library.hpp"
#include "tandem/tandem.hpp"

namespace co2_forecast {
namespace {

using tandem::base::Error;
using tandem::base::ErrorCode;
using tandem::base::Result;

TrainingSet training_set(const Experiment& experiment) {
  std::vector<double> times, residuals;
  for (const Measurement& row : experiment.training) {
    times.push_back(row.time_years);
    residuals.push_back(row.co2_ppm - experiment.training_mean_ppm);
  }
  return {TimeAxis(std::move(times)), std::move(residuals)};
}

TimeAxis forecast_times(const Report& report) {
  std::vector<double> times;
  if (!report.options.likelihood_only) {
    for (const ForecastWeek& week : report.experiment.weeks) times.push_back(week.time_years);
  }
  return TimeAxis(std::move(times));
}

ForecastError error_of(const Experiment& experiment, const Regression& regression) {
  std::vector<double> mean, deviation, measured;
  for (std::size_t i = 0; i < regression.mean_ppm.size(); ++i) {
    if (!experiment.weeks[i].measured_ppm) continue;
    mean.push_back(experiment.training_mean_ppm + regression.mean_ppm[i]);
    deviation.push_back(regression.deviation_ppm[i]);
    measured.push_back(*experiment.weeks[i].measured_ppm);
  }
  return forecast_error(mean, deviation, measured);
}

Result<FitOutcome> fit_with_progress(GaussianProcess& process, const Options& options) {
  FitOptions fit_options = options.fit_limits;
  fit_options.progress = [](const FitProgress& progress) {
    const std::string now = progress.log_marginal_likelihood
                                ? fmt::format("{:14.4f}", *progress.log_marginal_likelihood)
                                : "not positive definite";
    fmt::print(stderr, "fit: evaluation {:3}  {:6.1f} s  log marginal likelihood {}  best {:14.4f}\n",
               progress.evaluation_count, progress.seconds, now, progress.best_log_marginal_likelihood);
  };
  return fit(options.theta, [&](const Hyperparameters& theta) { return process.likelihood(theta); }, fit_options);
}

/// Fits if asked to, then runs the regression that the report is about, and times it.
Result<void> compute(tandem::Runtime& runtime, Report& report) {
  const TrainingSet training = training_set(report.experiment);
  GaussianProcess process(runtime, training, report.options.tile);
  report.theta = report.options.theta;
  if (report.options.fit) {
    auto outcome = fit_with_progress(process, report.options);
    if (!outcome) return outcome.error();
    report.theta = outcome.value().theta;
    report.fit = std::move(outcome).value();
  }

  const TimeAxis times = forecast_times(report);
  const std::size_t tasks_before = runtime.timeline().size();
  const auto begin = std::chrono::steady_clock::now();
  auto regression = process.regress(report.theta, times);
  report.cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!regression) {
    return Error{
        ErrorCode::invalid_argument,
        "the covariance matrix is not positive definite at these hyperparameters; raise --hyper white_noise=..."};
  }
  report.regression = std::move(*regression);
  report.cost.task_count = runtime.timeline().size() - tasks_before;
  report.cost.flop_count = report.regression.flop_count;
  report.cost.worker_count = runtime.worker_count();
  report.error = error_of(report.experiment, report.regression);
  return {};
}

/// The tasks of the regression: the last ones. Those of a fit come before and are left out.
std::vector<TimelineRow> timeline_rows(const tandem::Runtime& runtime, std::size_t count) {
  const auto events = runtime.timeline();
  std::vector<TimelineRow> rows;
  for (std::size_t i = events.size() - std::min(count, events.size()); i < events.size(); ++i) {
    rows.push_back({events[i].worker, *events[i].codelet, events[i].start_ns, events[i].end_ns, events[i].task});
  }
  return rows;
}

Result<void> run(tandem::Runtime& runtime, const Options& options) {
  auto measurements = read_measurements(options.data);
  if (!measurements) return measurements.error();
  auto experiment = make_experiment(measurements.value(), options.years);
  if (!experiment) return experiment.error();
  Report report{.options = options,
                .missing_count = measurements.value().missing_count,
                .experiment = std::move(experiment).value(),
                .fit = {},
                .theta = {},
                .regression = {},
                .error = {},
                .cost = {}};
  if (auto computed = compute(runtime, report); !computed) return computed;

  if (options.json) {
    fmt::print("{}", json_of(report));
  } else {
    if (report.fit) fmt::print("{}", text_of_fit(*report.fit));
    fmt::print("{}", text_of(report));
  }
  if (options.likelihood_only) return {};
  if (auto written = write_files(report, timeline_rows(runtime, report.cost.task_count), options.output_folder);
      !written) {
    return written;
  }
  if (options.pictures) {
    if (const auto drawn = draw_pictures(options.output_folder); !drawn) {
      if (drawn.error().code != ErrorCode::unsupported) return drawn;
      fmt::print(stderr, "co2_forecast: {}\n", drawn.error().message);
    }
  }
  if (!options.json) fmt::print("{:<24}{}\n", "files", options.output_folder.string());
  return {};
}

}  // namespace
}  // namespace co2_forecast

int main(int argc, char** argv) {
  try {
    // The runtime takes its own options, --tandem.*, out of the command line; the timeline is for the Gantt chart.
    tandem::Runtime runtime(argc, argv, {.workers = {}, .sched = {}, .more = {{"timeline", "true"}}});
    const auto parsed = co2_forecast::parse_options(argc, argv);
    if (const auto* status = std::get_if<co2_forecast::ExitStatus>(&parsed)) return status->value;
    if (const auto advice = tandem::linalg::blas_advice(); !advice.empty())
      fmt::print(stderr, "co2_forecast: {}\n", advice);
    if (const auto done = co2_forecast::run(runtime, std::get<co2_forecast::Options>(parsed)); !done) {
      fmt::print(stderr, "co2_forecast: {}\n", done.error().message);
      return 1;
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "co2_forecast: {}\n", error.what());
    return 1;
  }
}
