// tandem/analysis/measured_order.cpp: in which order workers ran tasks, and for which tasks the program waited.
#include "tandem/analysis/measured_order.hpp"

#include <algorithm>
#include <utility>

#include "tandem/analysis/sort_times.hpp"

namespace tandem::analysis {

WorkerOrder::WorkerOrder(const History& history) : before_(history.tasks.size(), no_number) {
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::vector<TimedRow>> by_worker;
  for (std::uint32_t row = 0; row < history.tasks.size(); ++row) {
    const TaskRow& task = history.tasks[row];
    if (task.has_run() && task.worker != no_worker) by_worker[{task.rank, task.worker}].push_back({task.start_ns, row});
  }
  for (auto& [worker, rows] : by_worker) {
    sort_by_time(rows, &TimedRow::ns);
    // A task that runs within another one is not before what follows.
    std::uint32_t before = no_number;
    std::int64_t before_end_ns = no_time;
    for (const auto& [start_ns, row] : rows) {
      const std::int64_t end_ns = history.tasks[row].end_ns;
      if (before != no_number && before_end_ns <= start_ns) before_[row] = before;
      if (before != no_number && end_ns < before_end_ns) continue;
      before = row;
      before_end_ns = end_ns;
    }
    rows = {};
  }
}

Waits::Waits(const History& history) : history_(history) {
  for (const WaitRow& wait : history.waits)
    if (wait.start_ns != no_time && wait.end_ns != no_time) ends_[wait.rank].push_back(wait.end_ns);
  for (auto& [rank, ends] : ends_) std::ranges::sort(ends);
  if (ends_.empty()) return;  // nobody will ask
  std::vector<TimedRow> moments;
  for (std::uint32_t row = 0; row < history.tasks.size(); ++row)
    if (history.tasks[row].has_run()) moments.push_back({history.tasks[row].end_ns, row});
  sort_by_time(moments, &TimedRow::ns);
  by_end_.reserve(moments.size());
  for (const TimedRow& moment : moments) by_end_.push_back(moment.row);
}

std::optional<std::int64_t> Waits::last_end(std::uint32_t rank, std::int64_t at_ns) const {
  const auto ends = ends_.find(rank);
  if (ends == ends_.end()) return std::nullopt;
  const auto after = std::ranges::upper_bound(ends->second, at_ns);
  return after == ends->second.begin() ? std::nullopt : std::optional(*std::prev(after));
}

std::optional<std::uint32_t> Waits::last_ended(std::int64_t at_ns) const {
  const auto after = std::ranges::upper_bound(by_end_, at_ns, {}, [&](std::uint32_t row) { return history_.tasks[row].end_ns; });
  return after == by_end_.begin() ? std::nullopt : std::optional(*std::prev(after));
}

}  // namespace tandem::analysis
