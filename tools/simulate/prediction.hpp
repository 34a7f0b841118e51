// tools/simulate/prediction.hpp: what several simulations say of one run.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::tools {

/// Times in the unit of the simulations.
struct Prediction {
  double median = 0;
  /// 90 % of runs lie between, if durations vary as the models say. Equal to the median for one simulation.
  double low = 0, high = 0;
};

/// The interval for one further value of a normal distribution of which these are drawn: the mean, and a number of
/// standard deviations by Student's t. `makespans` is not empty.
Prediction predict(const std::vector<double>& makespans);

/// Runs this command with these words, `simulate --json` and so on, and returns what it predicts, in s. Errors: those of
/// `run_program`; malformed.
base::Result<Prediction> predict_by_command(std::vector<std::string> words,
                                            const std::vector<std::pair<std::string, std::string>>& environment,
                                            std::chrono::milliseconds limit);

}  // namespace tandem::tools
