// tandem/analysis/task_graph.hpp: the measured graph of tasks: dependencies within ranks, messages between them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tandem/analysis/history.hpp"

namespace tandem::analysis {

/// Edges into each task, by the rows of a history. Nodes that never run (sends and receives of the flow, joins) are rows as well.
/// Immutable; refers to nothing.
class TaskGraph {
 public:
  struct Edge {
    std::uint32_t from = 0;                    ///< row
    std::uint32_t message = no_number;         ///< row in communications; no_number: a dependency
  };

  explicit TaskGraph(const History& history);

  std::span<const Edge> into(std::uint32_t task) const {
    return std::span(edges_).subspan(begins_[task], begins_[task + 1] - begins_[task]);
  }
  /// All rows, predecessors first. Rows on a cycle, which damaged traces may have, are left out.
  const std::vector<std::uint32_t>& in_order() const noexcept { return order_; }

 private:
  void put_in_order();

  std::vector<std::size_t> begins_;  ///< in edges_, of each row and of the end
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> order_;
};

}  // namespace tandem::analysis
