// tandem/analysis/verdict/quality.cpp: what a trace cannot show, because it is incomplete or its clocks do not agree.
#include "tandem/analysis/verdict/quality.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace tandem::analysis {
namespace {

void count_events(const History& history, Quality& result) {
  if (history.size > history.clocks.size()) result.missing_ranks = history.size - history.clocks.size();
  // A loss is recorded in the head of a packet, and as an event where a later event found room: one of them may be
  // missing.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> told;
  for (const TracerRow& row : history.tracer)
    if (row.kind == TracerKind::lost) told[{row.rank, row.actor}] += row.amount;
  for (const ActorFacts& actor : history.actors) {
    const auto events = told.find({actor.rank, actor.actor});
    const std::uint64_t lost = std::max(actor.lost_events, events == told.end() ? 0 : events->second);
    result.lost_events += lost;
    result.lossy_actors += lost > 0;
  }
  result.lost_events = std::max(result.lost_events, history.lost_events);
  for (const TracerRow& row : history.tracer)
    if (row.kind == TracerKind::waited && row.start_ns != no_time && row.end_ns > row.start_ns)
      result.tracer_waits_ns += row.end_ns - row.start_ns;
}

void count_tasks(const History& history, Quality& result) {
  const TaskTable& tasks = history.tasks;
  std::set<std::uint32_t> tells_starts;
  std::uint32_t last = no_number;
  for (const std::uint32_t row : tasks.rows()) {
    if (tasks.start_ns[row] == no_time || tasks.rank[row] == last) continue;
    tells_starts.insert(last = tasks.rank[row]);
  }
  for (const std::uint32_t row : tasks.rows()) {
    switch (tasks.status(row)) {
      case TaskStatus::failed: ++result.failed_tasks; break;
      case TaskStatus::cancelled: ++result.cancelled_tasks; break;
      case TaskStatus::running: ++result.running_tasks; break;
      case TaskStatus::submitted:
      case TaskStatus::ready: {
        const std::string& codelet = history.texts[tasks.codelet(row)];
        const bool is_kernel = !codelet.empty() && codelet.front() != '(';  // "(join)" and others do not run
        result.waiting_tasks += is_kernel && tells_starts.contains(tasks.rank[row]);
        break;
      }
      default: break;
    }
  }
}

void count_messages(const History& history, Quality& result) {
  std::set<std::uint32_t> known;
  for (const RankClock& clock : history.clocks) known.insert(clock.rank);
  for (const CommunicationRow& row : history.communications) {
    if (row.failed) {
      ++result.failed_messages;
    } else if (row.is_whole()) {
      if (row.arrived_ns >= row.posted_ns) continue;
      ++result.early_messages;
      result.earliest_ns = std::max(result.earliest_ns, row.posted_ns - row.arrived_ns);
    } else if (row.has_send()) {
      result.unmatched_sends += known.contains(row.destination);
    } else if (row.arrived_ns != no_time) {
      result.unmatched_receives += known.contains(row.source);
    } else {
      ++result.open_receives;
    }
  }
}

void judge_clocks(const History& history, Quality& result) {
  for (const RankClock& clock : history.clocks) {
    result.clocks_by_date += clock.by_date;
    result.worst_residual_ns = std::max(result.worst_residual_ns, clock.residual_max_ns);
    result.worst_residual_rms_ns = std::max(result.worst_residual_rms_ns, clock.residual_rms_ns);
  }
}

}  // namespace

Quality quality(const History& history) {
  Quality result{.cut_files = history.cut_files, .cut_events = history.cut_events};
  count_events(history, result);
  count_tasks(history, result);
  count_messages(history, result);
  judge_clocks(history, result);
  return result;
}

}  // namespace tandem::analysis
