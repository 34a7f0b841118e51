// tandem/analysis/bounds/task_graph.cpp: edges sorted by the task that they lead to.
#include "tandem/analysis/bounds/task_graph.hpp"

namespace tandem::analysis {
namespace {

/// The row of each dependency's predecessor; no_number: not known, or the task itself.
SpillVector<std::uint32_t> predecessors_of(const History& history) {
  SpillVector<std::uint32_t> rows(history.memory_of_tables());
  rows.resize(history.dependencies.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows.touch();
    const DependencyRow row = history.dependencies[i];
    const std::uint32_t from = history.find_task(history.tasks.rank[row.task], row.predecessor).value_or(no_number);
    rows[i] = from == row.task ? no_number : from;
  }
  return rows;
}

/// Calls `edge(to, from, message)` for each edge, always in one order.
template <class Call>
void for_each_edge(const History& history, const SpillVector<std::uint32_t>& predecessors, Call edge) {
  for (std::size_t i = 0; i < predecessors.size(); ++i) {
    predecessors.touch();
    if (predecessors[i] != no_number) edge(history.dependencies.task(i), predecessors[i], no_number);
  }
  for (std::uint32_t i = 0; i < history.communications.size(); ++i) {
    predecessors.touch();
    const CommunicationRow& row = history.communications[i];
    if (row.receive_task != no_number && row.send_task != no_number && row.is_whole())
      edge(row.receive_task, row.send_task, i);
  }
}

}  // namespace

TaskGraph::TaskGraph(const History& history)
    : begins_(history.memory_of_tables()), edges_(history.memory_of_tables()), order_(history.memory_of_tables()) {
  begins_.resize(history.tasks.size() + 1);
  const SpillVector<std::uint32_t> predecessors = predecessors_of(history);
  for_each_edge(history, predecessors, [&](std::uint32_t to, std::uint32_t from, std::uint32_t message) {
    ++begins_[to];
    rows_are_in_order_ = rows_are_in_order_ && from < to;
    has_messages_ = has_messages_ || message != no_number;
  });
  // Turns counts into the ends of each row's edges; each edge is then placed before the existing ones.
  std::uint64_t end = 0;
  for (std::uint64_t& begin : begins_) {
    begins_.touch();
    begin = end += begin;
  }
  edges_.resize(end);
  SpillVector<std::uint32_t> placed(history.memory_of_tables());  // of each row, how many edges
  placed.resize(history.tasks.size());
  const auto begin_of = [&](std::uint32_t row) { return row == 0 ? std::uint64_t{0} : begins_[row - 1]; };
  for_each_edge(history, predecessors, [&](std::uint32_t to, std::uint32_t from, std::uint32_t message) {
    edges_[begin_of(to) + placed[to]++] = {from, message};
  });
  for (std::size_t row = begins_.size(); row-- > 1;) {
    begins_.touch();
    begins_[row] = begins_[row - 1];
  }
  begins_[0] = 0;
  if (!rows_are_in_order_) put_in_order();
}

void TaskGraph::put_in_order() {
  const std::size_t count = begins_.size() - 1;
  // Edges out of each row, as positions of their ends: first counts, then the position of the next edge, at last the
  // ends.
  SpillVector<std::uint64_t> out(begins_.memory());
  SpillVector<std::uint32_t> ends(begins_.memory()), waits(begins_.memory());
  out.resize(count);
  for (const Edge& edge : edges_) {
    out.touch();
    ++out[edge.from];
  }
  std::uint64_t begin = 0;
  for (std::uint64_t& of_row : out) {
    out.touch();
    const std::uint64_t edges = of_row;
    of_row = begin;
    begin += edges;
  }
  ends.resize(edges_.size());
  waits.resize(count);
  for (std::uint32_t to = 0; to < count; ++to) {
    out.touch();
    for (const Edge& edge : into(to)) ends[out[edge.from]++] = to;
    waits[to] = static_cast<std::uint32_t>(into(to).size());
    if (waits[to] == 0) order_.push_back(to);
  }
  for (std::size_t i = 0; i < order_.size(); ++i) {
    out.touch();
    const std::uint32_t from = order_[i];
    for (std::uint64_t at = from == 0 ? 0 : out[from - 1]; at < out[from]; ++at)
      if (--waits[ends[at]] == 0) order_.push_back(ends[at]);
  }
}

}  // namespace tandem::analysis
