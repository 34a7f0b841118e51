// tandem/analysis/verdict/iterations.hpp: when the iterations of the program's outer loop were in flight.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// One pass through an iteration, on all ranks: from the start of its first task to the end of its last one.
struct IterationPass {
  std::int32_t iteration = 0;  ///< at least 0
  std::int64_t begin_ns = no_time, end_ns = no_time;
};

/// The iterations of tasks that have run and whose iteration the program told, in the order of their first tasks. A
/// negative number is none. A loop may run several times: where a rank submits tasks of an iteration again, after tasks
/// of another one, this is a pass of its own; the n-th passes of all ranks through an iteration are one. O(n log n).
std::vector<IterationPass> iterations(const History& history);

}  // namespace tandem::analysis
