// examples/co2_forecast/report.cpp: the table, the JSON object and the files. It computes nothing but rates.
#include "report.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace co2_forecast {

namespace {

using tandem::base::Error;
using tandem::base::ErrorCode;
using tandem::base::Result;

std::string dates_of(std::chrono::year_month_day first, std::chrono::year_month_day last) {
  return fmt::format("{} to {}", to_string(first), to_string(last));
}

Result<void> write_file(const std::filesystem::path& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    return Error{ErrorCode::io, fmt::format("{}: cannot be written ({})", path.string(), std::strerror(errno))};
  return {};
}

std::string forecast_csv(const Report& report) {
  std::string text = "date,time_years,role,measured_ppm,mean_ppm,lower_ppm,upper_ppm\n";
  for (const Measurement& row : report.experiment.training) {
    text += fmt::format("{},{:.6f},training,{},,,\n", to_string(row.date), row.time_years, row.co2_ppm);
  }
  for (std::size_t i = 0; i < report.experiment.weeks.size(); ++i) {
    const ForecastWeek& week = report.experiment.weeks[i];
    const double mean = report.experiment.training_mean_ppm + report.regression.mean_ppm[i];
    const double half_width = deviations_of_95_percent * report.regression.deviation_ppm[i];
    const std::string role_and_measured =
        week.measured_ppm ? fmt::format("held-out,{}", *week.measured_ppm) : "forecast,";
    text += fmt::format("{},{:.6f},{},{:.4f},{:.4f},{:.4f}\n", to_string(week.date), week.time_years, role_and_measured,
                        mean, mean - half_width, mean + half_width);
  }
  return text;
}

std::string timeline_csv(const std::vector<TimelineRow>& timeline) {
  std::string text = "worker,codelet,start_ns,end_ns,task\n";
  for (const TimelineRow& row : timeline) {
    text += fmt::format("{},{},{},{},{}\n", row.worker, row.codelet, row.start_ns, row.end_ns, row.task);
  }
  return text;
}

}  // namespace

std::string text_of(const Report& report) {
  const Experiment& experiment = report.experiment;
  const Options& options = report.options;
  const std::size_t n = experiment.training.size(), tiles = (n + options.tile - 1) / options.tile;
  std::string text;
  const auto add = [&text](const char* label, const std::string& value) {
    text += fmt::format("{:<24}{}\n", label, value);
  };

  add("data", fmt::format("{} ({} weeks without a measurement)", options.data.string(), report.missing_count));
  add("training",
      fmt::format("{} weeks, {}", n, dates_of(experiment.training.front().date, experiment.training.back().date)));
  if (!options.likelihood_only && !experiment.weeks.empty()) {
    const auto &first = experiment.weeks.front(), &last = experiment.weeks.back();
    add("forecast", fmt::format("{} weeks, {}; {} of them measured", experiment.weeks.size(),
                                dates_of(first.date, last.date), experiment.held_out_count));
  }
  add("covariance matrix",
      fmt::format("{} x {}, {} x {} tiles of {} x {}", n, n, tiles, tiles, options.tile, options.tile));
  add("log marginal likelihood", fmt::format("{:.6f} nats", report.regression.log_marginal_likelihood));
  if (report.error.count > 0) {
    add("forecast error",
        fmt::format("{:.3f} ppm root mean square, {:+.3f} ppm mean, {:.2f} ppm largest",
                    report.error.root_mean_square_ppm, report.error.mean_ppm, report.error.largest_ppm));
    add("95 % band",
        fmt::format("covers {:.1f} % of {} held-out measurements; mean log loss {:.3f} nats",
                    report.error.coverage_95_percent, report.error.count, report.error.mean_log_loss_nats));
  }
  const Cost& cost = report.cost;
  add("time", fmt::format("{:.1f} ms on {} workers", 1e3 * cost.seconds, cost.worker_count));
  const double gflop = 1e-9 * cost.flop_count;
  add("linear algebra", fmt::format("{:.2f} GFlop, {:.1f} GFlop/s", gflop, gflop / cost.seconds));
  add("tasks",
      fmt::format("{}, {:.0f} per second", cost.task_count, static_cast<double>(cost.task_count) / cost.seconds));
  return text;
}

std::string text_of_fit(const FitOutcome& outcome) {
  const Hyperparameters defaults;
  std::string text = fmt::format("{:<26}{:>12}{:>12}\n", "hyperparameter", "book", "fitted");
  for (const auto& field : hyperparameter_fields) {
    text += fmt::format("{:<26}{:>12.5g}{:>12.5g} {}\n", field.name, defaults.*field.member,
                        outcome.theta.*field.member, field.unit);
  }
  return text + fmt::format("log marginal likelihood {:.6f} nats after {} evaluations in {:.1f} s; ended: {}\n\n",
                            outcome.log_marginal_likelihood, outcome.evaluation_count, outcome.seconds,
                            outcome.stopped_because);
}

std::string json_of(const Report& report) {
  nlohmann::ordered_json object;
  object["tandem"] = CO2_TANDEM_VERSION;
  object["benchmark"] = "co2_forecast";
  object["machine"]["workers"] = report.cost.worker_count;
  for (const auto& field : hyperparameter_fields) object["hyperparameters"][field.name] = report.theta.*field.member;
  const nlohmann::ordered_json params = {{"n", report.experiment.training.size()},
                                         {"tile", report.options.tile},
                                         {"split_year", report.options.years.split_year},
                                         {"last_year", report.options.years.last_year}};
  auto& results = object["results"] = nlohmann::ordered_json::array();
  const auto add = [&](const char* name, double value, const char* unit) {
    results.push_back({{"name", name}, {"params", params}, {"value", value}, {"unit", unit}});
  };
  add("log_marginal_likelihood", report.regression.log_marginal_likelihood, "nat");
  if (report.error.count > 0) {
    add("root_mean_square_error", report.error.root_mean_square_ppm, "ppm");
    add("mean_error", report.error.mean_ppm, "ppm");
    add("largest_error", report.error.largest_ppm, "ppm");
    add("coverage_95", report.error.coverage_95_percent, "%");
    add("mean_log_loss", report.error.mean_log_loss_nats, "nat");
  }
  add("time", report.cost.seconds, "s");
  add("rate", 1e-9 * report.cost.flop_count / report.cost.seconds, "GFlop/s");
  add("tasks", static_cast<double>(report.cost.task_count), "");
  add("task_rate", static_cast<double>(report.cost.task_count) / report.cost.seconds, "1/s");
  if (report.fit) add("fit_time", report.fit->seconds, "s");
  return object.dump(2) + "\n";
}

Result<void> write_files(const Report& report, const std::vector<TimelineRow>& timeline,
                         const std::filesystem::path& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) return Error{ErrorCode::io, fmt::format("{}: cannot be made ({})", folder.string(), code.message())};
  for (const auto& [name, text] :
       {std::pair{"forecast.csv", forecast_csv(report)}, std::pair{"timeline.csv", timeline_csv(timeline)},
        std::pair{"result.json", json_of(report)}}) {
    if (auto written = write_file(folder / name, text); !written) return written;
  }
  return {};
}

}  // namespace co2_forecast
