// tools/simulate/prediction.hpp: what several simulations say of one run.
#pragma once

#include <cstddef>
#include <vector>

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

}  // namespace tandem::tools
