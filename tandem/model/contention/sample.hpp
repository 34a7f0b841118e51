// tandem/model/contention/sample.hpp: a campaign's measurements with one number of computing cores.
#pragma once

#include <limits>
#include <vector>

#include "tandem/model/contention/load.hpp"

namespace tandem::model::contention {

/// Bandwidths in MB/s; NaN where nothing was measured. Repetitions are samples of their own.
struct Sample {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();  ///< not measured

  unsigned cores = 0;                     ///< that compute, from 1
  double computation_alone_mb_s = none;   ///< of all cores, no communication
  double communication_alone_mb_s = none; ///< no computation
  double computation_mb_s = none;         ///< of all cores, both at once
  double communication_mb_s = none;       ///< both at once
};

/// All samples with data at one placement.
struct Curve {
  Placement placement = {};         ///< of the data
  std::vector<Sample> samples = {}; ///< in any order
};

}  // namespace tandem::model::contention
