// tandem/analysis/energy.hpp: what a run took of energy, and what each of its kernels did.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/analysis/history.hpp"
#include "tandem/model/energy/power_model.hpp"

namespace tandem::analysis {

/// From the events `worker.energy`. The intervals of the counters and the times of the tasks on their workers go through a `model::PowerModel` for each
/// kind of worker, as while the program ran. Here it is known exactly when tasks ran.
struct RunEnergy {
  struct Counter {
    std::uint32_t rank = 0;
    std::string name;
    double joules = 0, seconds = 0;
  };
  struct Kernel {
    std::string_view codelet;
    std::string_view kind;    ///< of worker
    double joules = 0;        ///< beyond what is drawn when nothing runs
    model::Watts watts = {};  ///< of one kernel that runs
  };
  struct Kind {
    std::string_view kind;
    double joules = 0;       ///< all
    double idle_joules = 0;  ///< that it would have taken without kernels, too
    model::Watts idle = {};  ///< of one rank's workers, or of one device
  };

  std::vector<Counter> counters;  ///< by rank
  std::vector<Kernel> kernels;    ///< the most first
  std::vector<Kind> kinds;
  double joules = 0;  ///< of all counters

  /// O(t log i) for t tasks and i intervals. Refers to the history.
  static RunEnergy of(const History& history);
};

}  // namespace tandem::analysis
