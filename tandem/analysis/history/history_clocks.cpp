// tandem/analysis/history/history_clocks.cpp: converts a history's times from the ranks' clocks to nanoseconds since
// the first event.
#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "tandem/analysis/history/history.hpp"
#include "tandem/analysis/tables/sort_times.hpp"

namespace tandem::analysis {
namespace {

/// The ranks of the corrections by place. The reference has place 0, whether or not its folder is here; the others
/// follow in order.
struct Places {
  explicit Places(const trace::TraceReader& run) {
    of_rank[0] = 0;
    for (const auto& rank : run.ranks) of_rank.try_emplace(rank->rank, of_rank.size());
  }
  std::unordered_map<std::uint32_t, std::size_t> of_rank;
};

std::int64_t date_offset_ns(const trace::RankTrace& rank) { return rank.realtime_ns - rank.realtime_local_ns; }

std::vector<clock::SyncPoint> points_of(const trace::RankTrace& rank) {
  std::vector<clock::SyncPoint> points;
  for (const trace::ClockPoint& point : rank.clock_points)
    points.push_back({.local_ns = point.local_ns, .reference_ns = point.reference_ns, .error_ns = point.error_ns,
                      .is_barrier = point.kind == trace::ClockPointKind::barrier});
  return points;
}

/// Corrects a rank that was never compared: on the host of rank 0 the clocks are one (the TSC's origin is the
/// machine's); elsewhere the dates of both systems count, which may be wrong by milliseconds.
bool compare_by_date(const trace::RankTrace& rank, const trace::RankTrace* reference,
                     std::vector<clock::SyncPoint>& points) {
  constexpr std::int64_t usual_error_ns = 10'000'000;
  if (!points.empty() || reference == nullptr || reference->rank != 0 || rank.rank == 0 || rank.host == reference->host)
    return false;
  points.push_back(
      {.local_ns = 0, .reference_ns = date_offset_ns(rank) - date_offset_ns(*reference), .error_ns = usual_error_ns});
  return true;
}

SpillVector<clock::TracedMessage> messages_of(const History& history, const Places& places) {
  SpillVector<clock::TracedMessage> messages(history.memory_of_tables());
  for (const CommunicationRow& row : history.communications) {
    if (!row.is_whole() || row.failed || row.source == row.destination) continue;
    const auto source = places.of_rank.find(row.source), destination = places.of_rank.find(row.destination);
    if (source == places.of_rank.end() || destination == places.of_rank.end()) continue;
    messages.push_back({.sender = base::Rank(static_cast<std::uint32_t>(source->second)),
                        .receiver = base::Rank(static_cast<std::uint32_t>(destination->second)),
                        .send_local_ns = row.posted_ns, .receive_local_ns = row.arrived_ns});
  }
  return messages;
}

class RunTime {
 public:
  RunTime(const std::vector<clock::Correction>& of_place, const Places& places) {
    for (const auto& [rank, place] : places.of_rank) cursors_.emplace(rank, clock::Correction::Cursor(of_place[place]));
  }
  void set_origin(std::int64_t origin_ns) noexcept { origin_ns_ = origin_ns; }
  std::int64_t of(std::uint32_t rank, std::int64_t local_ns) {
    clock::Correction::Cursor* const cursor = cursor_of(rank);
    return (cursor == nullptr ? local_ns : cursor->to_reference(local_ns)) - origin_ns_;
  }
  template <class... Times>
  void correct(std::uint32_t rank, Times&... times) {
    const auto one = [&](std::int64_t& time) {
      if (time != no_time) time = of(rank, time);
    };
    (one(times), ...);
  }
  template <class... Columns>
  void correct_row(std::uint32_t rank, std::uint32_t row, Columns&... columns) {
    const auto one = [&](auto& column) {
      if (column[row] != no_time) column.set(row, of(rank, column[row]));
    };
    (one(columns), ...);
  }

 private:
  /// The rank's correction, or null. Rows of a rank come in runs.
  clock::Correction::Cursor* cursor_of(std::uint32_t rank) {
    if (rank != last_rank_) {
      const auto cursor = cursors_.find(rank);
      last_ = cursor == cursors_.end() ? nullptr : &cursor->second;
      last_rank_ = rank;
    }
    return last_;
  }

  std::unordered_map<std::uint32_t, clock::Correction::Cursor> cursors_;
  std::uint32_t last_rank_ = no_number;
  clock::Correction::Cursor* last_ = nullptr;
  std::int64_t origin_ns_ = 0;
};

void correct_tables(History& history, RunTime& time) {
  TaskTable& tasks = history.tasks;
  for (const std::uint32_t row : tasks.rows())
    time.correct_row(tasks.rank[row], row, tasks.submit_ns, tasks.ready_ns, tasks.pushed_ns, tasks.popped_ns,
                     tasks.start_ns, tasks.end_ns);
  history.states.correct([&](std::uint32_t rank, std::int64_t ns) { return time.of(rank, ns); });
  for (CommunicationRow& row : history.communications) {
    time.correct(row.source, row.posted_ns, row.announced_ns, row.granted_ns, row.sent_ns, row.send_released_ns);
    time.correct(row.destination, row.receive_posted_ns, row.arrived_ns, row.receive_released_ns);
  }
  for (BroadcastRow& row : history.broadcasts)
    time.correct(row.root, row.posted_ns, row.routed_ns, row.sent_ns, row.released_ns);
  for (BagRow& row : history.bags) time.correct(row.rank, row.opened_ns, row.closed_ns);
  for (BagRecipientRow& row : history.bag_recipients) time.correct(row.rank, row.joined_ns);
  for (ForwardRow& row : history.forwards) time.correct(row.rank, row.time_ns);
  for (TransferRow& row : history.transfers) time.correct(row.rank, row.start_ns, row.end_ns);
  for (StagingRow& row : history.stagings) time.correct(history.tasks[row.task].rank, row.start_ns, row.end_ns);
  for (MemoryRow& row : history.memory) time.correct(row.rank, row.time_ns);
  for (ValueRow& row : history.counters) time.correct(row.rank, row.time_ns);
  for (EnergyRow& row : history.energy) {
    time.correct(row.rank, row.start_ns);
    time.correct(row.rank, row.end_ns);
  }
  for (ValueRow& row : history.marks) time.correct(row.rank, row.time_ns);
  for (SpanRow& row : history.spans) time.correct(row.rank, row.start_ns, row.end_ns);
  for (DeclaredEvents& type : history.declared)
    for (DeclaredEvents::Row& row : type.rows) time.correct(row.rank, row.time_ns);
  for (WaitRow& row : history.waits) time.correct(row.rank, row.start_ns, row.end_ns);
  for (TracerRow& row : history.tracer) {
    time.correct(row.rank, row.start_ns, row.end_ns);
    // The receiver may have waited since before the first event.
    if (row.start_ns != no_time) row.start_ns = std::max<std::int64_t>(row.start_ns, 0);
  }
}

/// Sorts the tables, which was impossible before: the ranks' clocks did not agree.
void sort_tables(History& history) {
  history.states.sort();
  sort_by_time(history.transfers, &TransferRow::start_ns);
  sort_by_time(history.memory, &MemoryRow::time_ns);
  sort_by_time(history.counters, &ValueRow::time_ns);
  sort_by_time(history.marks, &ValueRow::time_ns);
  sort_by_time(history.spans, &SpanRow::start_ns);
  sort_by_time(history.waits, &WaitRow::start_ns);
  sort_by_time(history.tracer, &TracerRow::start_ns);
}

}  // namespace

void correct_history(History& history, trace::TraceReader& run, const HistoryOptions& options) {
  const Places places(run);
  const trace::RankTrace* reference = run.rank_of(0);
  std::vector<std::vector<clock::SyncPoint>> points(places.of_rank.size());
  std::size_t most_points = 0;
  for (const auto& rank : run.ranks) {
    auto& of_rank = points[places.of_rank.at(rank->rank)] = points_of(*rank);
    if (rank->rank != 0) most_points = std::max(most_points, of_rank.size());
    const bool by_date = compare_by_date(*rank, reference, of_rank);
    const auto at = std::ranges::find(history.clocks, rank->rank, &RankClock::rank);
    if (at != history.clocks.end()) at->by_date = by_date;
  }
  history.method =
      options.method.value_or(most_points >= 2 ? clock::CorrectionMethod::linear : clock::CorrectionMethod::none);
  const auto messages = messages_of(history, places);
  clock::CorrectionOptions correction;
  correction.method = history.method;
  clock::CorrectedClocks corrected =
      clock::correct_clocks({.points = std::move(points), .messages = messages}, correction);
  history.clock_report = std::move(corrected.report);

  RunTime time(corrected.of_rank, places);
  std::int64_t origin_ns = std::numeric_limits<std::int64_t>::max(), last_ns = 0;
  for (RankClock& clock : history.clocks) {
    const clock::RankCorrectionReport& report = history.clock_report.ranks[places.of_rank.at(clock.rank)];
    clock.corrected = report.corrected;
    clock.residual_rms_ns = report.residual_rms_ns;
    clock.residual_max_ns = report.residual_max_ns;
    if (clock.first_ns == no_time) continue;
    const std::int64_t first_ns = time.of(clock.rank, clock.first_ns), end_ns = time.of(clock.rank, clock.last_ns);
    clock.first_offset_ns = first_ns - clock.first_ns;
    clock.last_offset_ns = end_ns - clock.last_ns;
    clock.first_ns = first_ns;
    clock.last_ns = end_ns;
    origin_ns = std::min(origin_ns, first_ns);
    last_ns = std::max(last_ns, end_ns);
  }
  if (origin_ns == std::numeric_limits<std::int64_t>::max()) origin_ns = last_ns = 0;  // no events at all
  history.origin_ns = origin_ns;
  history.duration_ns = std::max<std::int64_t>(last_ns - origin_ns, 0);
  for (RankClock& clock : history.clocks) {
    if (clock.first_ns == no_time) continue;
    clock.first_ns -= origin_ns;
    clock.last_ns -= origin_ns;
  }
  if (!run.ranks.empty()) {
    const trace::RankTrace& dated = reference != nullptr ? *reference : *run.ranks.front();
    history.date_ns = dated.realtime_ns + origin_ns - time.of(dated.rank, dated.realtime_local_ns);
  }
  time.set_origin(origin_ns);
  correct_tables(history, time);
  sort_tables(history);
}

}  // namespace tandem::analysis
