// examples/co2_forecast/options.cpp: the command line, by CLI11.
#include "options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/base/suggest.hpp"

namespace co2_forecast {

namespace {

using tandem::base::Error;
using tandem::base::ErrorCode;
using tandem::base::Result;

std::string help_of_hyperparameters() {
  const Hyperparameters defaults;
  std::string text =
      "Hyperparameters for --hyper NAME=VALUE and their defaults, Rasmussen and Williams (2006), section 5.4.3:\n";
  for (const auto& field : hyperparameter_fields) {
    text += fmt::format("  {:<24} {:.6g} {}\n", field.name, defaults.*field.member, field.unit);
  }
  return text + "Options of the runtime: --tandem.workers=N and others; `tandem config` lists them.";
}

/// Sets what `assignment`, NAME=VALUE, says.
Result<void> set_hyperparameter(const std::string& assignment, Hyperparameters& theta) {
  const auto equals = assignment.find('=');
  const std::string name = assignment.substr(0, equals);
  const auto field = std::find_if(hyperparameter_fields.begin(), hyperparameter_fields.end(),
                                  [&](const HyperparameterField& candidate) { return candidate.name == name; });
  if (field == hyperparameter_fields.end()) {
    std::vector<std::string> names;
    for (const auto& known : hyperparameter_fields) names.emplace_back(known.name);
    const std::string nearest = tandem::base::nearest_name(name, names);
    return Error{ErrorCode::not_found,
                 fmt::format("--hyper {}: there is no hyperparameter \"{}\"{}", assignment, name,
                             nearest.empty() ? "; --help lists them" : "; did you mean " + nearest + "?")};
  }
  const std::string text = equals == std::string::npos ? "" : assignment.substr(equals + 1);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value <= 0) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("--hyper {}: found \"{}\", expected {}=VALUE with a positive number", assignment, text, name)};
  }
  theta.*field->member = value;
  return {};
}

}  // namespace

std::variant<Options, ExitStatus> parse_options(int argc, const char* const* argv) {
  Options options;
  options.data = CO2_DATA;
  std::vector<std::string> assignments;
  CLI::App app(
      "Forecasts atmospheric CO2 at Mauna Loa by Gaussian process regression, with a tiled Cholesky on all cores.");
  app.option_defaults()->always_capture_default();
  app.add_option("--data", options.data, "CSV file with the columns date,co2_ppm");
  app.add_option("--out", options.output_folder, "folder for the results; made if it is not there");
  app.add_option("--split-year", options.years.split_year, "first year that is forecast, not learnt from")
      ->check(CLI::Range(1, 9999));
  app.add_option("--last-year", options.years.last_year, "last year that is forecast")->check(CLI::Range(1, 9999));
  app.add_option("--tile", options.tile, "rows and columns of a tile of the covariance matrix")
      ->check(CLI::Range(8, 8192));
  app.add_option("--hyper", assignments, "NAME=VALUE: sets a hyperparameter; may be repeated")->take_all()->expected(1);
  app.add_flag("--fit", options.fit, "first maximise the likelihood over the hyperparameters");
  app.add_option("--fit-evaluations", options.fit_limits.evaluations_limit,
                 "stop --fit after this number of evaluations")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--fit-seconds", options.fit_limits.seconds_limit, "stop --fit after this number of seconds")
      ->check(CLI::PositiveNumber);
  app.add_option("--fit-tolerance", options.fit_limits.tolerance_nats, "stop --fit when a step gains less, in nats")
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", options.json, "print one JSON object instead of a table");
  app.add_flag("--likelihood-only", options.likelihood_only, "no forecast, no files");
  app.add_flag("--pictures,!--no-pictures", options.pictures, "draw forecast.png and gantt.png");
  app.footer(help_of_hyperparameters());

  try {
    app.parse(argc, argv);
    constexpr int most_years = 100;
    if (options.years.last_year < options.years.split_year ||
        options.years.last_year - options.years.split_year >= most_years) {
      throw CLI::ValidationError(
          fmt::format("--last-year {}: expected a year from the split year {} on, {} years at most",
                      options.years.last_year, options.years.split_year, most_years));
    }
    for (const auto& assignment : assignments) {
      if (const auto set = set_hyperparameter(assignment, options.theta); !set)
        throw CLI::ValidationError(set.error().message);
    }
  } catch (const CLI::ParseError& error) {
    return ExitStatus{app.exit(error)};
  }
  return options;
}

}  // namespace co2_forecast
