// tandem/runtime/wait/find_cycle.hpp: finds a cycle in a graph, for graphs deeper than the stack.
#pragma once

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tandem::runtime {

/// What each node waits for; nodes that wait for nothing may be missing.
template <class Node>
using WaitsFor = std::unordered_map<Node, std::vector<Node>>;

/// Finds nodes that wait for each other: each for the next one, the last for the first. Empty when there is no cycle.
/// Depth first, with its own path instead of recursion; each edge is visited once.
template <class Node>
std::vector<Node> find_cycle(const std::vector<Node>& nodes, const WaitsFor<Node>& waits_for) {
  enum class Mark { fresh, open, closed };
  std::unordered_map<Node, Mark> marks;
  std::vector<std::pair<Node, std::size_t>> path;  // nodes with the index of the next edge to visit
  for (const Node& start : nodes) {
    if (marks[start] != Mark::fresh) continue;
    path.assign(1, {start, 0});
    marks[start] = Mark::open;
    while (!path.empty()) {
      auto& [node, next] = path.back();
      const auto edges = waits_for.find(node);
      if (edges == waits_for.end() || next == edges->second.size()) {
        marks[node] = Mark::closed;
        path.pop_back();
        continue;
      }
      const Node before = edges->second[next++];
      Mark& mark = marks[before];
      if (mark == Mark::closed) continue;
      if (mark == Mark::open) {
        std::vector<Node> cycle;
        const auto first = std::find_if(path.begin(), path.end(),
                                        [&](const auto& entry) { return entry.first == before; });
        for (auto at = first; at != path.end(); ++at) cycle.push_back(at->first);
        return cycle;
      }
      mark = Mark::open;
      path.emplace_back(before, 0);
    }
  }
  return {};
}

}  // namespace tandem::runtime
