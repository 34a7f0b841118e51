// tandem/analysis/bounds/measured_order.cpp: in which order workers ran tasks, and for which tasks the program waited.
#include "tandem/analysis/bounds/measured_order.hpp"

#include <algorithm>
#include <utility>

#include "tandem/analysis/tables/sort_times.hpp"

namespace tandem::analysis {

namespace {

/// The rows of the list that have run and fit, sorted by a time.
template <class Time, class Fits>
SpillVector<TimedRow> rows_by(const History& history, const SpillVector<std::uint32_t>& list, const Time& time_ns,
                              Fits fits) {
  SpillVector<TimedRow> rows(history.memory_of_tables());
  for (const std::uint32_t row : list)
    if (history.tasks.has_run(row) && fits(row)) rows.push_back({time_ns[row], row});
  sort_by_time_and_row(rows);
  return rows;
}

}  // namespace

WorkerOrder::WorkerOrder(const History& history) : before_(history.memory_of_tables()) {
  const TaskTable& tasks = history.tasks;
  before_.resize(tasks.size());
  struct Last {
    std::uint32_t row = no_number;
    std::int64_t end_ns = no_time;
  };
  std::map<std::pair<std::uint32_t, std::uint16_t>, Last> workers;
  // A task that runs within another one does not precede later ones.
  const auto rows = rows_by(history, tasks.started(), tasks.start_ns,
                            [&](std::uint32_t row) { return tasks.worker[row] != no_worker; });
  for (const auto& [start_ns, row] : rows) {
    rows.touch();
    Last& last = workers[{tasks.rank[row], tasks.worker[row]}];
    const std::int64_t end_ns = tasks.end_ns[row];
    if (last.row != no_number && last.end_ns <= start_ns) before_[row] = last.row + 1;
    if (last.row == no_number || end_ns >= last.end_ns) last = {row, end_ns};
  }
}

Waits::Waits(const History& history) : history_(history), by_end_(history.memory_of_tables()) {
  for (const WaitRow& wait : history.waits)
    if (wait.start_ns != no_time && wait.end_ns != no_time) ends_[wait.rank].push_back(wait.end_ns);
  for (auto& [rank, ends] : ends_) std::ranges::sort(ends);
  if (ends_.empty()) return;  // no query needs them
  const TaskTable& tasks = history.tasks;
  const auto moments = rows_by(history, tasks.ended(), tasks.end_ns, [](std::uint32_t) { return true; });
  for (const TimedRow& moment : moments) by_end_.push_back(moment.row);
}

std::optional<std::int64_t> Waits::last_end(std::uint32_t rank, std::int64_t at_ns) const {
  const auto ends = ends_.find(rank);
  if (ends == ends_.end()) return std::nullopt;
  const auto after = std::ranges::upper_bound(ends->second, at_ns);
  return after == ends->second.begin() ? std::nullopt : std::optional(*std::prev(after));
}

std::optional<std::uint32_t> Waits::last_ended(std::int64_t at_ns) const {
  const auto after = std::ranges::upper_bound(by_end_, at_ns, {},
                                              [&](std::uint32_t row) { return history_.tasks.end_ns[row]; });
  return after == by_end_.begin() ? std::nullopt : std::optional(*std::prev(after));
}

}  // namespace tandem::analysis
