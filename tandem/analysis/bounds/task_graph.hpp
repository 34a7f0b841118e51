// tandem/analysis/bounds/task_graph.hpp: the measured graph of tasks: dependencies within ranks, messages between them.
#pragma once

#include <cstdint>
#include <ranges>
#include <span>

#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// Edges into each task, by the rows of a history. Nodes that never run (sends and receives of the flow, joins) are
/// rows as well. Immutable; refers to nothing.
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
  /// All rows, predecessors first; in the order of rows where possible. Rows on a cycle, which damaged traces may have,
  /// are left out.
  auto in_order() const {
    const auto count = static_cast<std::uint32_t>(rows_are_in_order_ ? begins_.size() - 1 : order_.size());
    const std::uint32_t* const order = rows_are_in_order_ ? nullptr : order_.data();
    return std::views::iota(std::uint32_t{0}, count) |
           std::views::transform([order](std::uint32_t i) { return order == nullptr ? i : order[i]; });
  }
  /// Whether some edge is a message.
  bool has_messages() const noexcept { return has_messages_; }

 private:
  void put_in_order();

  SpillVector<std::uint64_t> begins_;  ///< in edges_, of each row and of the end
  SpillVector<Edge> edges_;
  SpillVector<std::uint32_t> order_;     ///< empty where rows are in order
  bool rows_are_in_order_ = true;        ///< each edge comes from an earlier row
  bool has_messages_ = false;
};

}  // namespace tandem::analysis
