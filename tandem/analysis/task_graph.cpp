// tandem/analysis/task_graph.cpp: edges sorted by the task that they lead to.
#include "tandem/analysis/task_graph.hpp"

#include <utility>

namespace tandem::analysis {
namespace {

/// The row of each dependency's predecessor; no_number: not known, or the task itself.
std::vector<std::uint32_t> predecessors_of(const History& history) {
  std::vector<std::uint32_t> rows;
  rows.reserve(history.dependencies.size());
  for (const DependencyRow& row : history.dependencies) {
    const std::uint32_t from = history.find_task(history.tasks[row.task].rank, row.predecessor).value_or(no_number);
    rows.push_back(from == row.task ? no_number : from);
  }
  return rows;
}

/// Calls `edge(to, from, message)` for each edge, always in the same order.
template <class Call>
void for_each_edge(const History& history, const std::vector<std::uint32_t>& predecessors, Call edge) {
  for (std::size_t i = 0; i < predecessors.size(); ++i)
    if (predecessors[i] != no_number) edge(history.dependencies[i].task, predecessors[i], no_number);
  for (std::uint32_t i = 0; i < history.communications.size(); ++i) {
    const CommunicationRow& row = history.communications[i];
    if (row.receive_task != no_number && row.send_task != no_number && row.is_whole()) edge(row.receive_task, row.send_task, i);
  }
}

}  // namespace

TaskGraph::TaskGraph(const History& history) : begins_(history.tasks.size() + 1) {
  const std::vector<std::uint32_t> predecessors = predecessors_of(history);
  for_each_edge(history, predecessors, [&](std::uint32_t to, std::uint32_t, std::uint32_t) { ++begins_[to + 1]; });
  for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  edges_.resize(begins_.back());
  std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
  for_each_edge(history, predecessors,
                [&](std::uint32_t to, std::uint32_t from, std::uint32_t message) { edges_[next[to]++] = {from, message}; });
  put_in_order();
}

void TaskGraph::put_in_order() {
  const std::size_t count = begins_.size() - 1;
  // Edges out of each row, as places of their ends.
  std::vector<std::size_t> out_begins(count + 1);
  for (const Edge& edge : edges_) ++out_begins[edge.from + 1];
  for (std::size_t i = 1; i <= count; ++i) out_begins[i] += out_begins[i - 1];
  std::vector<std::uint32_t> ends(edges_.size()), waits(count);
  std::vector<std::size_t> next(out_begins.begin(), out_begins.end() - 1);
  order_.reserve(count);
  for (std::uint32_t to = 0; to < count; ++to) {
    for (const Edge& edge : into(to)) ends[next[edge.from]++] = to;
    waits[to] = static_cast<std::uint32_t>(into(to).size());
    if (waits[to] == 0) order_.push_back(to);
  }
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::uint32_t from = order_[i];
    for (std::size_t at = out_begins[from]; at < out_begins[from + 1]; ++at)
      if (--waits[ends[at]] == 0) order_.push_back(ends[at]);
  }
}

}  // namespace tandem::analysis
