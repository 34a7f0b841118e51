// tandem/analysis/memory_use.cpp: how much memory data had on each memory node.
#include "tandem/analysis/memory_use.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "tandem/analysis/step_function.hpp"

namespace tandem::analysis {

std::vector<NodeMemory> memory_use(const History& history) {
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::vector<const MemoryRow*>> rows_of;
  for (const MemoryRow& row : history.memory) rows_of[{row.rank, row.node}].push_back(&row);
  std::vector<NodeMemory> result;
  for (const auto& [place, rows] : rows_of) {
    NodeMemory memory{.rank = place.first, .node = place.second};
    std::vector<StepFunction::Change> changes;
    std::int64_t lowest = 0;
    for (const MemoryRow* row : rows) {
      changes.push_back({row->time_ns, row->bytes});
      memory.allocations += row->bytes > 0;
      lowest = std::min(lowest, row->used_bytes);
    }
    changes.push_back({0, -lowest});
    const StepFunction used(std::move(changes));
    const Interval run{0, history.duration_ns};
    memory.peak_at_ns = used.max_at_ns({0, history.duration_ns + 1});  // at the last event, too
    memory.peak_bytes = used.at(memory.peak_at_ns);
    memory.mean_bytes = used.mean(run);
    memory.last_bytes = used.at(history.duration_ns);
    result.push_back(memory);
  }
  return result;
}

}  // namespace tandem::analysis
