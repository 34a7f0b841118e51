// tandem/analysis/time_split.cpp: cuts the states of each worker where the reasons of its rank for being idle change.
#include "tandem/analysis/time_split.hpp"

#include <algorithm>
#include <map>
#include <span>

namespace tandem::analysis {
namespace {

/// Why workers of a rank are idle: from `since_ns` to the next entry's.
struct Reason {
  std::int64_t since_ns = 0;
  Spent spent = Spent::outside;
};

/// What changes at an instant: tasks that are ready and have not begun, receives that have not arrived, tasks that have not ended.
struct Change {
  std::int64_t at_ns = 0;
  std::int32_t ready = 0, receives = 0, tasks = 0;
};

Spent reason_of(const Change& now, std::int64_t at_ns, std::int64_t last_submit_ns) noexcept {
  if (now.ready > 0) return Spent::ready_elsewhere;
  if (now.receives > 0) return Spent::awaiting_message;
  if (now.tasks > 0) return Spent::no_ready_task;
  return at_ns < last_submit_ns ? Spent::awaiting_submission : Spent::outside;
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
      }
      const bool begun = at_ns >= rank.first_submit_ns;
      const Spent spent = begun ? reason_of(now, at_ns, rank.last_submit_ns) : Spent::outside;
      if (rank.reasons.empty() || rank.reasons.back().spent != spent) rank.reasons.push_back({at_ns, spent});
    }
    rank.changes = {};
  }

  std::map<std::uint32_t, Rank> ranks_;
};

/// Calls `add(spent, from_ns, to_ns)` for the time from `from_ns` to `to_ns`, cut by reason.
template <class Add>
void add_idle(std::span<const Reason> reasons, std::int64_t from_ns, std::int64_t to_ns, const Add& add) {
  auto next = std::ranges::upper_bound(reasons, from_ns, {}, &Reason::since_ns);
  while (from_ns < to_ns) {
    const Spent spent = next == reasons.begin() ? Spent::outside : std::prev(next)->spent;
    const std::int64_t until_ns = next == reasons.end() ? to_ns : std::min(to_ns, next->since_ns);
    add(spent, from_ns, until_ns);
    from_ns = until_ns;
    if (next != reasons.end()) ++next;
  }
}

template <class Add>
void add_state(ActorState state, std::span<const Reason> reasons, std::int64_t from_ns, std::int64_t to_ns, const Add& add) {
  switch (state) {
    case ActorState::executing: return add(Spent::executing, from_ns, to_ns);
    case ActorState::fetching: return add(Spent::fetching, from_ns, to_ns);
    case ActorState::scheduling: return add(Spent::scheduling, from_ns, to_ns);
    case ActorState::holding: return add(Spent::holding, from_ns, to_ns);
    case ActorState::absent: return add(Spent::program, from_ns, to_ns);
    case ActorState::polling:
    case ActorState::sleeping:
    case ActorState::progressing: return add_idle(reasons, from_ns, to_ns, add);
    default: return add(Spent::unknown, from_ns, to_ns);
  }
}

/// Calls `add(worker, spent, from_ns, to_ns)` for all that was recorded of the workers within the makespan.
template <class Add>
void for_each_stretch(const History& history, const TimeSplit& split, const Add& add) {
  const Reasons reasons(history);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> place_of;
  for (std::uint32_t i = 0; i < split.workers.size(); ++i) place_of[{split.workers[i].rank, split.workers[i].actor}] = i;
  for (const StateRow& state : history.states) {
    const auto place = place_of.find({state.rank, state.actor});
    if (place == place_of.end()) continue;
    const std::int64_t from_ns = std::max(state.start_ns, split.begin_ns);
    const std::int64_t to_ns = std::min(state.end_ns, split.begin_ns + split.makespan_ns);
    if (from_ns >= to_ns) continue;
    add_state(state.state, reasons.of(state.rank), from_ns, to_ns,
              [&](Spent spent, std::int64_t from, std::int64_t to) { add(place->second, spent, from, to); });
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

  for (const ActorFacts& actor : history.actors) {
    if (actor.kind != trace::ActorKind::worker) continue;
    split.workers.push_back({.rank = actor.rank, .actor = actor.actor, .worker = actor.index});
  }
  std::ranges::sort(split.workers, {}, [](const WorkerTimes& worker) { return std::pair(worker.rank, worker.worker); });
  for_each_stretch(history, split, [&](std::uint32_t worker, Spent spent, std::int64_t from_ns, std::int64_t to_ns) {
    split.workers[worker].ns[static_cast<std::size_t>(spent)] += to_ns - from_ns;
  });
  for (WorkerTimes& worker : split.workers) {
    std::int64_t known_ns = 0;
    for (const std::int64_t ns : worker.ns) known_ns += ns;
    worker.ns[static_cast<std::size_t>(Spent::unknown)] += split.makespan_ns - known_ns;
  }
  return split;
}

std::vector<Stretch> stretches_of(const History& history, const TimeSplit& split, std::int64_t shortest_ns) {
  std::vector<Stretch> found;
  for_each_stretch(history, split, [&](std::uint32_t worker, Spent spent, std::int64_t from_ns, std::int64_t to_ns) {
    if (spent == Spent::executing) return;
    Stretch* const last = found.empty() ? nullptr : &found.back();
    if (last != nullptr && last->worker == worker && last->spent == spent && last->end_ns == from_ns) last->end_ns = to_ns;
    else found.push_back({worker, spent, from_ns, to_ns});
  });
  std::erase_if(found, [&](const Stretch& stretch) { return stretch.end_ns - stretch.start_ns < shortest_ns; });
  std::ranges::sort(found, {}, [](const Stretch& stretch) { return std::pair(stretch.worker, stretch.start_ns); });
  return found;
}

}  // namespace tandem::analysis
