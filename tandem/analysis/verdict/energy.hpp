// tandem/analysis/verdict/energy.hpp: the energy of a run and of each of its kernels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/analysis/history/history.hpp"
#include "tandem/model/energy/power_model.hpp"

namespace tandem::analysis {

/// The energy of a run, from the events `worker.energy`. The intervals of the counters and the times of the tasks on
/// their workers go through a `model::PowerModel` for each kind of worker, as while the program ran. Here the times of
/// tasks are known exactly.
struct RunEnergy {
  struct Counter {
    std::uint32_t rank = 0;
    std::string name;
    double joules = 0, seconds = 0;
  };
  struct Kernel {
    std::string_view codelet;
    std::string_view kind;    ///< of worker
    double joules = 0;        ///< beyond the idle power
    model::Watts watts = {};  ///< of one running kernel
  };
  struct Kind {
    std::string_view kind;
    double joules = 0;       ///< all
    double idle_joules = 0;  ///< that would have been spent without kernels, too
    model::Watts idle = {};  ///< of one rank's workers, or of one device
  };

  std::vector<Counter> counters;  ///< by rank
  std::vector<Kernel> kernels;    ///< most energy first
  std::vector<Kind> kinds;
  double joules = 0;  ///< of all counters

  /// O(t log i) for t tasks and i intervals. Refers to the history.
  static RunEnergy of(const History& history);
};

}  // namespace tandem::analysis
