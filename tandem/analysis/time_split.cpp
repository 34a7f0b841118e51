// tandem/analysis/time_split.cpp: cuts the states of each worker where the reasons of its rank for being idle change.
#include "tandem/analysis/time_split.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

namespace tandem::analysis {
namespace {

/// Why workers of a rank are idle: from `since_ns` to the next entry's.
struct Reason {
  std::int64_t since_ns = 0;
  Spent spent = Spent::outside;
};

/// What changes at an instant: tasks that are ready and have not begun, receives that have not arrived, tasks that have not ended, and
/// those of them that run.
struct Change {
  std::int64_t at_ns = 0;
  std::int32_t ready = 0, receives = 0, tasks = 0, running = 0;
};

Spent reason_of(const Change& now, std::int64_t at_ns, std::int64_t last_submit_ns) noexcept {
  if (now.ready > 0) return Spent::ready_elsewhere;
  if (now.receives > 0) return Spent::awaiting_message;
  if (now.tasks > now.running) return Spent::no_ready_task;
  if (at_ns < last_submit_ns) return Spent::awaiting_submission;
  return now.tasks > 0 ? Spent::no_ready_task : Spent::outside;
}

class Reasons {
 public:
  explicit Reasons(const History& history) {
    for (const TaskRow& task : history.tasks) add(task);
    for (const CommunicationRow& row : history.communications) {
      if (row.receive_posted_ns == no_time || row.arrived_ns == no_time || row.failed) continue;
      Rank& rank = ranks_[row.destination];
      rank.changes.push_back({.at_ns = row.receive_posted_ns, .receives = 1});
      rank.changes.push_back({.at_ns = std::max(row.arrived_ns, row.receive_posted_ns), .receives = -1});
    }
    for (auto& [number, rank] : ranks_) accumulate(rank);
  }

  std::span<const Reason> of(std::uint32_t rank) const {
    const auto found = ranks_.find(rank);
    return found == ranks_.end() ? std::span<const Reason>() : found->second.reasons;
  }

 private:
  struct Rank {
    std::vector<Change> changes;
    std::vector<Reason> reasons;
    std::int64_t first_submit_ns = no_time, last_submit_ns = no_time;
  };

  /// Tasks that never ran, such as the sends and receives of the flow, keep nobody waiting by themselves.
  void add(const TaskRow& task) {
    if (task.submit_ns == no_time || !task.has_run()) return;
    Rank& rank = ranks_[task.rank];
    rank.first_submit_ns = rank.first_submit_ns == no_time ? task.submit_ns : std::min(rank.first_submit_ns, task.submit_ns);
    rank.last_submit_ns = std::max(rank.last_submit_ns, task.submit_ns);
    rank.changes.push_back({.at_ns = task.submit_ns, .tasks = 1});
    rank.changes.push_back({.at_ns = std::max(task.end_ns, task.submit_ns), .tasks = -1});
    rank.changes.push_back({.at_ns = std::max(task.start_ns, task.submit_ns), .running = 1});
    rank.changes.push_back({.at_ns = std::max(task.end_ns, task.submit_ns), .running = -1});
    if (task.ready_ns == no_time || task.ready_ns >= task.start_ns) return;
    rank.changes.push_back({.at_ns = task.ready_ns, .ready = 1});
    rank.changes.push_back({.at_ns = task.start_ns, .ready = -1});
  }

  static void accumulate(Rank& rank) {
    std::ranges::sort(rank.changes, {}, &Change::at_ns);
    Change now;
    for (std::size_t i = 0; i < rank.changes.size();) {
      const std::int64_t at_ns = rank.changes[i].at_ns;
      for (; i < rank.changes.size() && rank.changes[i].at_ns == at_ns; ++i) {
        now.ready += rank.changes[i].ready;
        now.receives += rank.changes[i].receives;
        now.tasks += rank.changes[i].tasks;
        now.running += rank.changes[i].running;
      }
      const bool begun = at_ns >= rank.first_submit_ns;
      const Spent spent = begun ? reason_of(now, at_ns, rank.last_submit_ns) : Spent::outside;
      if (rank.reasons.empty() || rank.reasons.back().spent != spent) rank.reasons.push_back({at_ns, spent});
    }
    rank.changes = {};
  }

  std::map<std::uint32_t, Rank> ranks_;
};

using Call = std::function<void(const Stretch&)>;

/// Cuts an idle stretch where the reasons change.
void cut_idle(Stretch stretch, std::span<const Reason> reasons, const Call& call) {
  const std::int64_t to_ns = stretch.end_ns;
  auto next = std::ranges::upper_bound(reasons, stretch.start_ns, {}, &Reason::since_ns);
  while (stretch.start_ns < to_ns) {
    stretch.spent = next == reasons.begin() ? Spent::outside : std::prev(next)->spent;
    stretch.end_ns = next == reasons.end() ? to_ns : std::min(to_ns, next->since_ns);
    call(stretch);
    stretch.start_ns = stretch.end_ns;
    if (next != reasons.end()) ++next;
  }
}

/// Nothing: the worker is idle.
std::optional<Spent> spent_in(ActorState state) noexcept {
  switch (state) {
    case ActorState::executing: return Spent::executing;
    case ActorState::fetching: return Spent::fetching;
    case ActorState::scheduling: return Spent::scheduling;
    case ActorState::holding: return Spent::holding;
    case ActorState::absent: return Spent::program;
    case ActorState::polling:
    case ActorState::sleeping:
    case ActorState::progressing: return std::nullopt;
    default: return Spent::unknown;
  }
}

}  // namespace

std::string_view name_of(Spent spent) noexcept {
  constexpr std::array<std::string_view, spent_kinds> names{
      "executing",        "fetching",      "scheduling",          "holding", "ready_elsewhere",
      "awaiting_message", "no_ready_task", "awaiting_submission", "program", "outside", "unknown"};
  return names[static_cast<std::size_t>(spent)];
}

SpentTimes TimeSplit::total() const noexcept {
  SpentTimes sum = {};
  for (const WorkerTimes& worker : workers)
    for (std::size_t i = 0; i < spent_kinds; ++i) sum[i] += worker.ns[i];
  return sum;
}

TimeSplit split_time(const History& history) {
  TimeSplit split;
  std::int64_t begin_ns = no_time, end_ns = no_time;
  for (const TaskRow& task : history.tasks) {
    if (!task.has_run()) continue;
    const std::int64_t first_ns = task.submit_ns != no_time ? std::min(task.submit_ns, task.start_ns) : task.start_ns;
    begin_ns = begin_ns == no_time ? first_ns : std::min(begin_ns, first_ns);
    end_ns = std::max(end_ns, task.end_ns);
  }
  if (begin_ns == no_time) begin_ns = end_ns = 0;
  split.begin_ns = begin_ns;
  split.makespan_ns = end_ns - begin_ns;

  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> place_of;
  for (const ActorFacts& actor : history.actors) {
    if (actor.kind != trace::ActorKind::worker) continue;
    place_of[{actor.rank, actor.actor}] = split.workers.size();
    split.workers.push_back({.rank = actor.rank, .actor = actor.actor, .worker = actor.index});
  }
  for_each_stretch(history, split, [&](const Stretch& stretch) {
    split.workers[place_of.at({stretch.rank, stretch.actor})].ns[static_cast<std::size_t>(stretch.spent)] += stretch.end_ns - stretch.start_ns;
  });
  for (WorkerTimes& worker : split.workers) {
    std::int64_t known_ns = 0;
    for (const std::int64_t ns : worker.ns) known_ns += ns;
    worker.ns[static_cast<std::size_t>(Spent::unknown)] += split.makespan_ns - known_ns;
  }
  std::ranges::sort(split.workers, {}, [](const WorkerTimes& worker) { return std::pair(worker.rank, worker.worker); });
  return split;
}

void for_each_stretch(const History& history, const TimeSplit& split, const Call& call) {
  const Reasons reasons(history);
  for (const StateRow& state : history.states) {
    const ActorFacts* actor = history.find_actor(state.rank, state.actor);
    if (actor == nullptr || actor->kind != trace::ActorKind::worker) continue;
    const Stretch stretch{.rank = state.rank, .actor = state.actor, .spent = spent_in(state.state).value_or(Spent::outside),
                          .start_ns = std::max(state.start_ns, split.begin_ns), .end_ns = std::min(state.end_ns, split.end_ns())};
    if (stretch.start_ns >= stretch.end_ns) continue;
    if (spent_in(state.state)) call(stretch);
    else cut_idle(stretch, reasons.of(state.rank), call);
  }
}

}  // namespace tandem::analysis
