// tandem/analysis/verdict/iterations.cpp: when the iterations of the program's outer loop were in flight.
#include "tandem/analysis/verdict/iterations.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace tandem::analysis {
namespace {

/// A rank's position in its loops.
struct Place {
  std::int32_t iteration = no_iteration;
  std::size_t pass = 0;                            ///< row
  std::map<std::int32_t, std::uint32_t> begun = {};  ///< how often each iteration has begun
};

}  // namespace

std::vector<IterationPass> iterations(const History& history) {
  std::vector<IterationPass> passes;
  std::map<std::pair<std::int32_t, std::uint32_t>, std::size_t>
      row_of;  // of each iteration, and the number of its pass
  std::map<std::uint32_t, Place> places;
  for (const TaskRow& task : history.tasks) {
    if (!task.has_run() || task.worker == no_worker || task.iteration < 0) continue;
    Place& place = places[task.rank];
    if (place.iteration != task.iteration) {
      place.iteration = task.iteration;
      const auto [row, fresh] = row_of.try_emplace({task.iteration, place.begun[task.iteration]++}, passes.size());
      if (fresh) passes.push_back({.iteration = task.iteration, .begin_ns = task.start_ns, .end_ns = task.end_ns});
      place.pass = row->second;
    }
    IterationPass& pass = passes[place.pass];
    pass.begin_ns = std::min(pass.begin_ns, task.start_ns);
    pass.end_ns = std::max(pass.end_ns, task.end_ns);
  }
  return passes;
}

}  // namespace tandem::analysis
