// tandem/analysis/bounds/replay.cpp: moves each task by the shift of its last cause.
#include "tandem/analysis/bounds/replay.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "tandem/analysis/bounds/measured_order.hpp"
#include "tandem/analysis/tables/sort_times.hpp"

namespace tandem::analysis {
namespace {

/// A moment as measured, and as replayed.
struct Moment {
  std::int64_t measured_ns = no_time, replayed_ns = no_time;
};

class Replay {
 public:
  Replay(const History& history, const TaskGraph& graph, Messages messages)
      : history_(history), graph_(graph), messages_(messages), order_(history), waits_(history), done_(history.memory_of_tables()) {
    done_.resize(history.tasks.size(), Moment());
  }

  std::int64_t end_ns() {
    std::int64_t end_ns = 0;
    for (const auto& [measured_ns, row] : in_order()) {
      done_.touch();
      done_[row].replayed_ns = replay(row);
      if (history_.tasks.has_run(row)) end_ns = std::max(end_ns, done_[row].replayed_ns);
    }
    return end_ns;
  }

 private:
  /// All rows in the order in which they were done; also computes when that was. Nodes that do not run are done with
  /// their last cause. Until a row's turn comes, its replay equals the measurement.
  SpillVector<TimedRow> in_order() {
    SpillVector<TimedRow> rows(done_.memory());
    std::vector<bool> seen(history_.tasks.size());
    const auto add = [&](std::uint32_t row, std::int64_t measured_ns) {
      done_[row].measured_ns = done_[row].replayed_ns = measured_ns;
      rows.push_back({measured_ns, row});
    };
    for (const std::uint32_t row : graph_.in_order()) {
      seen[row] = true;
      add(row, history_.tasks.has_run(row) ? history_.tasks.end_ns[row] : last_cause(row).measured_ns);
    }
    // Rows on a cycle, which damaged traces may have.
    for (std::uint32_t row = 0; row < seen.size(); ++row)
      if (!seen[row]) add(row, history_.tasks.end_ns[row]);
    // Sorting keeps predecessors first at equal times.
    sort_by_time(rows, &TimedRow::ns);
    return rows;
  }

  std::int64_t replay(std::uint32_t row) const {
    const Moment cause = last_cause(row);
    if (cause.measured_ns == no_time) return done_[row].measured_ns;
    return history_.tasks.has_run(row) ? cause.replayed_ns + (history_.tasks.end_ns[row] - cause.measured_ns)
                                       : cause.replayed_ns;
  }

  /// The last event that had to happen before a task could begin: when that was, and when it is in the replay.
  Moment last_cause(std::uint32_t row) const {
    const bool has_run = history_.tasks.has_run(row);
    const std::int64_t start_ns = history_.tasks.start_ns[row];
    Moment last;
    const auto offer = [&](Moment moment) {
      if (moment.measured_ns == no_time || (has_run && moment.measured_ns > start_ns)) return;
      last.measured_ns = std::max(last.measured_ns, moment.measured_ns);
      last.replayed_ns = std::max(last.replayed_ns, moment.replayed_ns);
    };
    offer(submission(row));
    for (const TaskGraph::Edge& edge : graph_.into(row))
      offer(edge.message == no_number ? done_[edge.from] : arrival(edge));
    if (order_.before(row) != no_number) offer(done_[order_.before(row)]);
    return last;
  }

  Moment submission(std::uint32_t row) const {
    const std::int64_t submit_ns = history_.tasks.submit_ns[row];
    if (submit_ns == no_time) return {};
    const auto resumed_ns = waits_.last_end(history_.tasks.rank[row], submit_ns);
    const auto awaited = resumed_ns ? waits_.last_ended(*resumed_ns) : std::nullopt;
    const std::int64_t earlier_ns = awaited ? done_[*awaited].measured_ns - done_[*awaited].replayed_ns : 0;
    return {submit_ns, submit_ns - earlier_ns};
  }

  /// A message's arrival: it leaves as long after its data was made as it was measured.
  Moment arrival(const TaskGraph::Edge& edge) const {
    const CommunicationRow& row = history_.communications[edge.message];
    const Moment made = done_[edge.from];
    const std::int64_t earlier_ns =
        made.measured_ns == no_time || made.measured_ns > row.posted_ns ? 0 : made.measured_ns - made.replayed_ns;
    const std::int64_t on_its_way_ns =
        messages_ == Messages::free ? std::max<std::int64_t>(row.arrived_ns - row.posted_ns, 0) : 0;
    return {row.arrived_ns, row.arrived_ns - on_its_way_ns - earlier_ns};
  }

  const History& history_;
  const TaskGraph& graph_;
  Messages messages_;
  WorkerOrder order_;
  Waits waits_;
  SpillVector<Moment> done_;  ///< of each row
};

}  // namespace

std::int64_t replay_end_ns(const History& history, const TaskGraph& graph, Messages messages) {
  if (graph.has_messages()) return Replay(history, graph, messages).end_ns();
  // Without a change nothing moves: the replay is the measurement.
  std::int64_t end_ns = 0;
  for (const std::uint32_t row : history.tasks.rows())
    if (history.tasks.has_run(row)) end_ns = std::max(end_ns, history.tasks.end_ns[row]);
  return end_ns;
}

}  // namespace tandem::analysis
