// examples/co2_forecast/options.hpp: the command line of the program.
#pragma once

#include <cstddef>
#include <filesystem>
#include <variant>

#include "covariance.hpp"
#include "experiment.hpp"
#include "fit.hpp"

namespace co2_forecast {

/// What a person asked for. Options of the runtime (`--tandem.*`) are not among them: the runtime reads those itself.
struct Options {
  std::filesystem::path data;  ///< the file in the source tree, unless another is named
  std::filesystem::path output_folder = "co2_forecast_results";
  ForecastYears years;
  std::size_t tile = 192;  ///< rows and columns of a tile
  Hyperparameters theta;
  bool fit = false;
  FitOptions fit_limits;
  bool json = false;
  bool likelihood_only = false;
  bool pictures = true;
};

/// The exit status of a program that has nothing more to do: after --help, or after a mistake, which was explained.
struct ExitStatus {
  int value = 0;
};

/// Reads the command line. Prints help to standard output, and what is wrong with it to standard error.
std::variant<Options, ExitStatus> parse_options(int argc, const char* const* argv);

}  // namespace co2_forecast
