// tandem/analysis/verdict/time_split.cpp: cuts the states of each worker where its rank's reasons for being idle
// change.
#include "tandem/analysis/verdict/time_split.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "tandem/analysis/history/tasks_of_ranks.hpp"
#include "tandem/analysis/tables/sort_times.hpp"

namespace tandem::analysis {
namespace {

/// Numbers of a rank's tasks and receives at a time: tasks that are ready and have not begun, receives that have not
/// arrived, tasks that have not ended, those of them that run, and those that wait for memory.
struct Counts {
  std::int64_t ready = 0, receives = 0, tasks = 0, running = 0, staging = 0;
};

Spent reason_of(const Counts& now, std::int64_t at_ns, std::int64_t last_submit_ns) noexcept {
  if (now.staging > 0) return Spent::awaiting_memory;
  if (now.ready > 0) return Spent::ready_elsewhere;
  if (now.receives > 0) return Spent::awaiting_message;
  if (now.tasks > now.running) return Spent::no_ready_task;
  if (at_ns < last_submit_ns) return Spent::awaiting_submission;
  return now.tasks > 0 ? Spent::no_ready_task : Spent::outside;
}

/// The times at which the counts of a rank change, by kind of change.
class Changes {
 public:
  explicit Changes(const std::shared_ptr<SpillMemory>& memory)
      : submitted_(memory), begun_(memory), ended_(memory), ready_(memory), taken_(memory), receives_(memory), arrivals_(memory),
        stagings_(memory), staged_(memory) {}

  // Adds times of a task, roughly in the order of these times. Tasks that never ran, such as the sends and receives of
  // the flow, delay no worker by themselves.
  void add_submitted(const TaskTable& tasks, std::uint32_t row) {
    if (counts(tasks, row)) submitted_.push_back(tasks.submit_ns[row]);
  }
  void add_ready(const TaskTable& tasks, std::uint32_t row) {
    if (counts(tasks, row) && tasks.ready_ns[row] < tasks.start_ns[row]) ready_.push_back(tasks.ready_ns[row]);
  }
  void add_begun(const TaskTable& tasks, std::uint32_t row) {
    if (!counts(tasks, row)) return;
    const std::int64_t start_ns = tasks.start_ns[row], ready_ns = tasks.ready_ns[row];
    begun_.push_back(std::max(start_ns, tasks.submit_ns[row]));
    if (ready_ns != no_time && ready_ns < start_ns) taken_.push_back(start_ns);
  }
  void add_ended(const TaskTable& tasks, std::uint32_t row) {
    if (counts(tasks, row)) ended_.push_back(std::max(tasks.end_ns[row], tasks.submit_ns[row]));
  }
  void add_receive(std::int64_t posted_ns, std::int64_t arrived_ns) {
    receives_.push_back(posted_ns);
    arrivals_.push_back(std::max(arrived_ns, posted_ns));
  }

  void add_staging(std::int64_t start_ns, std::int64_t end_ns) {
    stagings_.push_back(start_ns);
    staged_.push_back(std::max(end_ns, start_ns));
  }

  /// Steps through the times of all lists together, each of which it sorts.
  SpillVector<IdleReason> reasons() {
    SpillVector<std::int64_t>* const lists[] = {&submitted_, &begun_,    &ended_,    &ready_, &taken_,
                                                &receives_,  &arrivals_, &stagings_, &staged_};
    for (SpillVector<std::int64_t>* const list : lists) {
      sort_by_time(*list);
      list->push_back(never);
    }
    const std::int64_t first_submit_ns = submitted_.front();
    const std::int64_t last_submit_ns = submitted_.size() > 1 ? submitted_[submitted_.size() - 2] : never;
    std::array<std::size_t, std::size(lists)> next = {};
    SpillVector<IdleReason> result(submitted_.memory());
    for (;;) {
      std::int64_t at_ns = never;
      for (std::size_t i = 0; i < next.size(); ++i) at_ns = std::min(at_ns, (*lists[i])[next[i]]);
      if (at_ns == never) return result;
      for (std::size_t i = 0; i < next.size(); ++i)
        while ((*lists[i])[next[i]] == at_ns) ++next[i];
      submitted_.touch();
      const auto count = [&](std::size_t begun, std::size_t ended) {
        return static_cast<std::int64_t>(next[begun]) - static_cast<std::int64_t>(next[ended]);
      };
      const Counts now{.ready = count(3, 4), .receives = count(5, 6), .tasks = count(0, 2), .running = count(1, 2),
                       .staging = count(7, 8)};
      const Spent spent = at_ns >= first_submit_ns ? reason_of(now, at_ns, last_submit_ns) : Spent::outside;
      if (result.empty() || result.back().spent != spent) result.push_back({at_ns, spent});
    }
  }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();  ///< ends each list

  static bool counts(const TaskTable& tasks, std::uint32_t row) noexcept {
    return tasks.submit_ns[row] != no_time && tasks.has_run(row);
  }

  SpillVector<std::int64_t> submitted_, begun_, ended_, ready_, taken_, receives_, arrivals_, stagings_, staged_;
};

/// A receive that was posted and has arrived, or a task's wait for memory.
struct TimeOfRank {
  std::uint32_t rank = 0;
  std::int64_t start_ns = 0, end_ns = 0;
};

std::map<std::uint32_t, SpillVector<IdleReason>> reasons_of(const History& history) {
  const TaskTable& tasks = history.tasks;
  const TasksOfRanks all(history), started(history, tasks.started()), ended(history, tasks.ended()),
      readied(history, tasks.readied());
  std::set<std::uint32_t> ranks;
  for (const std::uint32_t rank : all.ranks()) ranks.insert(rank);
  SpillVector<TimeOfRank> receives(history.memory_of_tables());
  for (const CommunicationRow& row : history.communications) {
    receives.touch();
    if (row.receive_posted_ns == no_time || row.arrived_ns == no_time || row.failed) continue;
    receives.push_back({row.destination, row.receive_posted_ns, row.arrived_ns});
    ranks.insert(row.destination);
  }
  sort_by_time(receives, &TimeOfRank::rank);
  SpillVector<TimeOfRank> stagings(history.memory_of_tables());
  for (const StagingRow& row : history.stagings) stagings.push_back({tasks.rank[row.task], row.start_ns, row.end_ns});
  sort_by_time(stagings, &TimeOfRank::rank);
  std::map<std::uint32_t, SpillVector<IdleReason>> result;
  std::size_t receive = 0, staging = 0;
  for (const std::uint32_t rank : ranks) {
    Changes changes(history.memory_of_tables());
    all.for_each(rank, [&](std::uint32_t row) { changes.add_submitted(tasks, row); });
    readied.for_each(rank, [&](std::uint32_t row) { changes.add_ready(tasks, row); });
    started.for_each(rank, [&](std::uint32_t row) { changes.add_begun(tasks, row); });
    ended.for_each(rank, [&](std::uint32_t row) { changes.add_ended(tasks, row); });
    for (; receive < receives.size() && receives[receive].rank == rank; ++receive)
      changes.add_receive(receives[receive].start_ns, receives[receive].end_ns);
    for (; staging < stagings.size() && stagings[staging].rank == rank; ++staging)
      changes.add_staging(stagings[staging].start_ns, stagings[staging].end_ns);
    result.emplace(rank, changes.reasons());
  }
  return result;
}

using Call = std::function<void(const Stretch&)>;

/// The first reason after a time, searched from `from` on in growing steps: idle times of a worker follow each other.
std::span<const IdleReason>::iterator first_after(std::span<const IdleReason> reasons, std::size_t from,
                                                  std::int64_t ns) {
  std::size_t step = 1, end = from;
  while (end < reasons.size() && reasons[end].since_ns <= ns) {
    from = end + 1;
    end += step;
    step *= 2;
  }
  return std::ranges::upper_bound(reasons.begin() + static_cast<std::ptrdiff_t>(from),
                                  reasons.begin() + static_cast<std::ptrdiff_t>(std::min(end, reasons.size())), ns, {},
                                  &IdleReason::since_ns);
}

/// Cuts an idle stretch where the reasons change. `from`: no earlier reason is the first after the beginning of this
/// stretch, or of the next.
void cut_idle(Stretch stretch, std::span<const IdleReason> reasons, std::size_t& from, const Call& call) {
  const std::int64_t to_ns = stretch.end_ns;
  auto next = first_after(reasons, from, stretch.start_ns);
  from = static_cast<std::size_t>(next - reasons.begin());
  while (stretch.start_ns < to_ns) {
    stretch.spent = next == reasons.begin() ? Spent::outside : std::prev(next)->spent;
    stretch.end_ns = next == reasons.end() ? to_ns : std::min(to_ns, next->since_ns);
    call(stretch);
    stretch.start_ns = stretch.end_ns;
    if (next != reasons.end()) ++next;
  }
}

/// The category of a state; empty: the worker is idle.
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

template <class Iterator>
void go_through(const History& history, const TimeSplit& split, Iterator first, Iterator last, const Call& call) {
  const ActorFacts* actor = nullptr;
  std::span<const IdleReason> reasons;
  std::size_t from = 0;
  std::int64_t before_ns = 0;
  for (; first != last; ++first) {
    const StateRow state = *first;
    if (actor == nullptr || actor->rank != state.rank || actor->actor != state.actor) {
      actor = history.find_actor(state.rank, state.actor);
      const auto of_rank = split.reasons.find(state.rank);
      reasons = {};
      if (of_rank != split.reasons.end()) reasons = {of_rank->second.data(), of_rank->second.size()};
      from = 0;
      before_ns = no_time;
    }
    if (actor == nullptr || actor->kind != trace::ActorKind::worker) continue;
    const Stretch stretch{.rank = state.rank,
                          .actor = state.actor,
                          .spent = spent_in(state.state).value_or(Spent::outside),
                          .start_ns = std::max(state.start_ns, split.begin_ns),
                          .end_ns = std::min(state.end_ns, split.end_ns())};
    if (stretch.start_ns >= stretch.end_ns) continue;
    if (spent_in(state.state)) {
      call(stretch);
      continue;
    }
    if (stretch.start_ns < before_ns) from = 0;  // of a damaged trace
    before_ns = stretch.start_ns;
    cut_idle(stretch, reasons, from, call);
  }
}

}  // namespace

std::string_view name_of(Spent spent) noexcept {
  constexpr std::array<std::string_view, spent_kinds> names{
      "executing",        "fetching",      "scheduling",          "holding", "ready_elsewhere", "awaiting_memory",
      "awaiting_message", "no_ready_task", "awaiting_submission", "program", "outside",         "unknown"};
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
  const TaskTable& tasks = history.tasks;
  for (const std::uint32_t row : tasks.rows()) {
    if (!tasks.has_run(row)) continue;
    const std::int64_t submit_ns = tasks.submit_ns[row], start_ns = tasks.start_ns[row];
    const std::int64_t first_ns = submit_ns != no_time ? std::min(submit_ns, start_ns) : start_ns;
    begin_ns = begin_ns == no_time ? first_ns : std::min(begin_ns, first_ns);
    end_ns = std::max(end_ns, tasks.end_ns[row]);
  }
  if (begin_ns == no_time) begin_ns = end_ns = 0;
  split.begin_ns = begin_ns;
  split.makespan_ns = end_ns - begin_ns;

  split.reasons = reasons_of(history);

  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> place_of;
  for (const ActorFacts& actor : history.actors) {
    if (actor.kind != trace::ActorKind::worker) continue;
    place_of[{actor.rank, actor.actor}] = split.workers.size();
    split.workers.push_back({.rank = actor.rank, .actor = actor.actor, .worker = actor.index});
  }
  for_each_stretch(history, split, [&](const Stretch& stretch) {
    split.workers[place_of.at({stretch.rank, stretch.actor})].ns[static_cast<std::size_t>(stretch.spent)] +=
        stretch.end_ns - stretch.start_ns;
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
  go_through(history, split, history.states.begin(), history.states.end(), call);
}

void for_each_stretch_of(const History& history, const TimeSplit& split, std::uint32_t rank, const Call& call) {
  const auto [first, last] = history.states.of_rank(rank);
  go_through(history, split, first, last, call);
}

}  // namespace tandem::analysis
