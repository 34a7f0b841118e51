// tandem/analysis/bounds/area_bound.hpp: the makespan of a run's tasks on workers that are never idle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// Tasks of a codelet on workers of a kind: how many there were, and how many an optimal distribution would have.
struct KernelPlace {
  Texts::Id codelet = 0;
  std::uint32_t kind = 0;   ///< index in `AreaBound::kinds`
  std::uint64_t tasks = 0;  ///< that executed; a task that never ended counts, too
  std::int64_t ns = 0;      ///< sum of their times, less that of tasks within them
  double placed = 0;        ///< in an optimal distribution; 0 also where none is known
};

/// The area bound of the measured tasks. On each worker of a kind, a task of a codelet takes the mean of those that
/// executed there; a codelet that never executed on a kind cannot run there. See area_program.hpp.
struct AreaBound {
  struct Kind {
    std::string name;           ///< "cpu"
    std::uint32_t workers = 0;  ///< of all ranks
  };
  std::int64_t ns = 0;                ///< rounded down; at most the makespan
  bool is_exact = true;               ///< false: a weaker bound, since there was no solver
  std::vector<Kind> kinds;            ///< by name
  std::vector<KernelPlace> kernels;   ///< by codelet and kind; where a codelet executed
};

/// O(n) for n states, and a linear program when there are several kinds.
AreaBound area_bound(const History& history);

}  // namespace tandem::analysis
