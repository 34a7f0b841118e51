// tandem/analysis/verdict/memory_use.cpp: how much memory data had on each memory node.
#include "tandem/analysis/verdict/memory_use.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "tandem/analysis/tables/step_function.hpp"

namespace tandem::analysis {

std::vector<NodeMemory> memory_use(const History& history) {
  struct Node {
    SpillVector<StepFunction::Change> changes;
    std::uint64_t allocations = 0;
    std::int64_t lowest = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint16_t>, Node> nodes;
  for (const MemoryRow& row : history.memory) {
    const auto [at, added] = nodes.try_emplace({row.rank, row.node});
    Node& node = at->second;
    if (added) node.changes = SpillVector<StepFunction::Change>(history.memory_of_tables());
    node.changes.push_back({row.time_ns, row.bytes});
    node.allocations += row.bytes > 0;
    node.lowest = std::min(node.lowest, row.used_bytes);
  }
  std::vector<NodeMemory> result;
  for (auto& [place, node] : nodes) {
    node.changes.push_back({0, -node.lowest});
    const StepFunction used(std::move(node.changes));
    const Interval run{0, history.duration_ns};
    NodeMemory memory{.rank = place.first, .node = place.second};
    memory.allocations = node.allocations;
    memory.peak_at_ns = used.max_at_ns({0, history.duration_ns + 1});  // at the last event, too
    memory.peak_bytes = used.at(memory.peak_at_ns);
    memory.mean_bytes = used.mean(run);
    memory.last_bytes = used.at(history.duration_ns);
    result.push_back(memory);
  }
  return result;
}

}  // namespace tandem::analysis
