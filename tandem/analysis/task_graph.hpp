// tandem/analysis/task_graph.hpp: the measured graph of tasks: dependencies within ranks, messages between them.
#pragma once

#include <cstdint>
#include <span>

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
    return {edges_.data() + begins_[task], edges_.data() + begins_[task + 1]};
  }
  /// All rows, predecessors first. Rows on a cycle, which damaged traces may have, are left out.
  std::span<const std::uint32_t> in_order() const noexcept { return {order_.data(), order_.size()}; }
  /// Whether some edge is a message.
  bool has_messages() const noexcept { return has_messages_; }

 private:
  void put_in_order();

  SpillVector<std::uint64_t> begins_;  ///< in edges_, of each row and of the end
  SpillVector<Edge> edges_;
  SpillVector<std::uint32_t> order_;
  bool has_messages_ = false;
};

}  // namespace tandem::analysis
