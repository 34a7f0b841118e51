// tandem/analysis/task_graph.cpp: edges sorted by the task that they lead to.
#include "tandem/analysis/task_graph.hpp"

#include <utility>

namespace tandem::analysis {
namespace {

/// Calls `edge(to, from, message)` for each edge, always in the same order.
template <class Call>
void for_each_edge(const History& history, Call edge) {
  for (const DependencyRow& row : history.dependencies) {
    const auto from = history.find_task(history.tasks[row.task].rank, row.predecessor);
    if (from && *from != row.task) edge(row.task, *from, no_number);
  }
  for (std::uint32_t i = 0; i < history.communications.size(); ++i) {
    const CommunicationRow& row = history.communications[i];
    if (row.receive_task != no_number && row.send_task != no_number && row.is_whole()) edge(row.receive_task, row.send_task, i);
  }
}

}  // namespace

TaskGraph::TaskGraph(const History& history) : begins_(history.tasks.size() + 1) {
  for_each_edge(history, [&](std::uint32_t to, std::uint32_t, std::uint32_t) { ++begins_[to + 1]; });
  for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  edges_.resize(begins_.back());
  std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
  for_each_edge(history, [&](std::uint32_t to, std::uint32_t from, std::uint32_t message) { edges_[next[to]++] = {from, message}; });
}

std::vector<std::uint32_t> TaskGraph::in_order() const {
  const std::size_t count = begins_.size() - 1;
  // Edges out of each row, as places of their ends.
  std::vector<std::size_t> out_begins(count + 1);
  for (const Edge& edge : edges_) ++out_begins[edge.from + 1];
  for (std::size_t i = 1; i <= count; ++i) out_begins[i] += out_begins[i - 1];
  std::vector<std::uint32_t> ends(edges_.size()), waits(count);
  std::vector<std::size_t> next(out_begins.begin(), out_begins.end() - 1);
  std::vector<std::uint32_t> order;
  order.reserve(count);
  for (std::uint32_t to = 0; to < count; ++to) {
    for (const Edge& edge : into(to)) ends[next[edge.from]++] = to;
    waits[to] = static_cast<std::uint32_t>(into(to).size());
    if (waits[to] == 0) order.push_back(to);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t from = order[i];
    for (std::size_t at = out_begins[from]; at < out_begins[from + 1]; ++at)
      if (--waits[ends[at]] == 0) order.push_back(ends[at]);
  }
  return order;
}

}  // namespace tandem::analysis
