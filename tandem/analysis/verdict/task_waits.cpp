// tandem/analysis/verdict/task_waits.cpp: cuts the time from each task's submission to its start.
#include "tandem/analysis/verdict/task_waits.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace tandem::analysis {
namespace {

constexpr std::uint8_t mode_write = 1, mode_commute = 3, mode_scratch = 5;

/// A time, and the row of its event.
struct At {
  std::int64_t ns = 0;
  std::uint32_t row = no_number;
};
/// Times by rank and datum, sorted once complete.
using TimesOfData = std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<At>>;

void sort(TimesOfData& times) {
  for (auto& [data, list] : times) std::ranges::stable_sort(list, {}, &At::ns);
}
/// The last one until `ns`; null: there is none.
const At* last_until(const TimesOfData& times, std::uint32_t rank, std::uint32_t data, std::int64_t ns) {
  const auto found = times.find({rank, data});
  if (found == times.end()) return nullptr;
  const auto after = std::ranges::upper_bound(found->second, ns, {}, &At::ns);
  return after == found->second.begin() ? nullptr : &*std::prev(after);
}

class WaitCutter {
 public:
  WaitCutter(const History& history, const TaskGraph& graph)
      : history_(history), graph_(graph), waits_(history.tasks.size()) {}

  std::vector<TaskWait> made() && {
    find_commuting();
    for (std::uint32_t row = 0; row < waits_.size(); ++row) {
      const TaskRow& task = history_.tasks[row];
      if (task.has_run() && task.submit_ns != no_time && task.submit_ns <= task.start_ns) cut(row);
    }
    // Waits of a task for room or copies, after it was ready and before its start.
    for (const StagingRow& row : history_.stagings) {
      const TaskRow& task = history_.tasks[row.task];
      TaskWait& wait = waits_[row.task];
      if (!task.has_run()) continue;
      const std::int64_t ns = std::min({std::min(row.end_ns, task.start_ns) - row.start_ns, wait.worker_ns});
      if (ns <= 0) continue;
      wait.worker_ns -= ns;
      (row.stage == trace::StagingState::memory ? wait.memory_ns : wait.copies_ns) += ns;
    }
    return std::move(waits_);
  }

 private:
  /// The end of what had to happen last before `start_ns`; no_time: nothing is known. Nodes that do not run pass on
  /// what they waited for.
  std::int64_t find_last(std::uint32_t row, std::int64_t start_ns, TaskWait& wait) {
    std::int64_t last_ns = no_time;
    const auto offer = [&](std::int64_t at_ns, std::uint32_t of, std::uint32_t message) {
      if (at_ns == no_time || at_ns > start_ns || (last_ns != no_time && at_ns <= last_ns)) return;
      last_ns = at_ns;
      wait.last = of;
      wait.message = message;
    };
    nodes_.assign(1, row);
    for (std::size_t i = 0; i < nodes_.size() && i < most_nodes; ++i) {
      for (const TaskGraph::Edge& edge : graph_.into(nodes_[i])) {
        if (edge.message != no_number) offer(history_.communications[edge.message].arrived_ns, edge.from, edge.message);
        else if (history_.tasks[edge.from].has_run()) offer(history_.tasks[edge.from].end_ns, edge.from, no_number);
        else nodes_.push_back(edge.from);
      }
    }
    if (wait.message != no_number) wait.last = maker(wait.last);
    return last_ns;
  }
  /// The task whose data the node `sender` sends; no_number: it is not known.
  std::uint32_t maker(std::uint32_t sender) const {
    if (sender == no_number || history_.tasks[sender].has_run()) return sender;
    std::uint32_t last = no_number;
    for (const TaskGraph::Edge& edge : graph_.into(sender))
      if (history_.tasks[edge.from].has_run() &&
          (last == no_number || history_.tasks[edge.from].end_ns > history_.tasks[last].end_ns))
        last = edge.from;
    return last;
  }

  void cut(std::uint32_t row) {
    const TaskRow& task = history_.tasks[row];
    TaskWait& wait = waits_[row];
    const std::int64_t last_ns = find_last(row, task.start_ns, wait);
    std::int64_t ready_ns = task.ready_ns != no_time ? task.ready_ns : last_ns != no_time ? last_ns : task.submit_ns;
    ready_ns = std::clamp(ready_ns, task.submit_ns, task.start_ns);
    if (ready_ns == task.submit_ns) wait.last = wait.message = no_number;  // all of them had ended before
    wait.graph_ns = ready_ns - task.submit_ns;
    std::int64_t turn_ns = ready_ns;
    for (auto at = commuting_.lower_bound(row); at != commuting_.end() && at->first == row; ++at) {
      const At* const other = last_until(ends_, task.rank, at->second, task.start_ns);
      if (other != nullptr && other->row != row) turn_ns = std::max(turn_ns, other->ns);
    }
    wait.turn_ns = turn_ns - ready_ns;
    wait.worker_ns = task.start_ns - turn_ns;
  }

  void find_commuting() {
    for (const AccessRow& access : history_.accesses) {
      const TaskRow& task = history_.tasks[access.task];
      if (access.mode != mode_commute || !task.has_run()) continue;
      commuting_.emplace(access.task, access.data);
      ends_[{task.rank, access.data}].push_back({task.end_ns, access.task});
    }
    sort(ends_);
  }

  static constexpr std::size_t most_nodes = 10'000;  ///< consecutive ones that do not run

  const History& history_;
  const TaskGraph& graph_;
  std::vector<TaskWait> waits_;
  std::vector<std::uint32_t> nodes_;
  std::multimap<std::uint32_t, std::uint32_t> commuting_;  ///< task, data
  TimesOfData ends_;                                       ///< of commuting tasks
};

}  // namespace

std::string_view name_of(WaitCause cause) noexcept {
  constexpr std::array<std::string_view, wait_causes> names{"predecessors", "message", "turn",
                                                            "memory",       "copies",  "worker"};
  return names[static_cast<std::size_t>(cause)];
}

WaitCause TaskWait::cause() const noexcept {
  if (total_ns() == 0) return WaitCause::worker;
  const std::int64_t longest_ns = std::max({graph_ns, turn_ns, memory_ns, copies_ns, worker_ns});
  if (graph_ns == longest_ns) return message != no_number ? WaitCause::message : WaitCause::predecessors;
  if (turn_ns == longest_ns) return WaitCause::turn;
  if (memory_ns == longest_ns) return WaitCause::memory;
  return copies_ns == longest_ns ? WaitCause::copies : WaitCause::worker;
}

std::vector<TaskWait> task_waits(const History& history, const TaskGraph& graph) {
  return WaitCutter(history, graph).made();
}

std::vector<Delivery> deliveries(const History& history) {
  std::vector<Delivery> result(history.accesses.size());
  TimesOfData arrivals, writes, copies;
  for (std::uint32_t i = 0; i < history.communications.size(); ++i) {
    const CommunicationRow& row = history.communications[i];
    if (row.arrived_ns != no_time && row.receive_data != no_number && row.destination != no_number &&
        row.source != row.destination && !row.failed)
      arrivals[{row.destination, row.receive_data}].push_back({row.arrived_ns, i});
  }
  for (std::uint32_t i = 0; i < history.transfers.size(); ++i) {
    const TransferRow& row = history.transfers[i];
    if (row.start_ns != no_time && row.end_ns != no_time) copies[{row.rank, row.data}].push_back({row.end_ns, i});
  }
  if (arrivals.empty() && copies.empty()) return result;
  const auto sees_value = [](std::uint8_t mode) { return mode != mode_write && mode != mode_scratch; };
  for (const AccessRow& access : history.accesses) {
    const TaskRow& task = history.tasks[access.task];
    if (access.mode != 0 && access.mode != mode_scratch && task.has_run())
      writes[{task.rank, access.data}].push_back({task.end_ns, access.task});
  }
  sort(arrivals);
  sort(writes);
  sort(copies);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const AccessRow& access = history.accesses[i];
    const TaskRow& task = history.tasks[access.task];
    if (!sees_value(access.mode) || !task.has_run()) continue;
    const At* const arrived = last_until(arrivals, task.rank, access.data, task.start_ns);
    const At* const written = last_until(writes, task.rank, access.data, task.start_ns);
    if (arrived != nullptr && (written == nullptr || written->ns <= arrived->ns)) result[i].message = arrived->row;
    const std::int64_t ready_ns = task.ready_ns != no_time ? task.ready_ns : task.submit_ns;
    const At* const copied = last_until(copies, task.rank, access.data, task.start_ns);
    if (copied != nullptr && ready_ns != no_time && copied->ns > ready_ns) result[i].transfer = copied->row;
  }
  return result;
}

}  // namespace tandem::analysis
