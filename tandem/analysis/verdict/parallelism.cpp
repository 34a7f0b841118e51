// tandem/analysis/verdict/parallelism.cpp: how many tasks were submitted, ready and running, over time.
#include "tandem/analysis/verdict/parallelism.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "tandem/analysis/history/tasks_of_ranks.hpp"

namespace tandem::analysis {
namespace {

struct Intervals {
  explicit Intervals(const std::shared_ptr<SpillMemory>& memory)
      : submitted(memory), ready(memory), running(memory), idle(memory) {}

  IntervalList submitted, ready, running, idle;

  // Adds times of a task that has run, roughly in the order of these times.
  void add_submitted(const TaskTable& tasks, std::uint32_t row) {
    if (tasks.submit_ns[row] != no_time) submitted.add_begin({tasks.submit_ns[row], tasks.end_ns[row]});
  }
  void add_ready(const TaskTable& tasks, std::uint32_t row) {
    ready.add_begin({tasks.ready_ns[row], tasks.start_ns[row]});
  }
  void add_started(const TaskTable& tasks, std::uint32_t row) {
    running.add_begin({tasks.start_ns[row], tasks.end_ns[row]});
    if (tasks.ready_ns[row] != no_time) ready.add_end({tasks.ready_ns[row], tasks.start_ns[row]});
  }
  void add_ended(const TaskTable& tasks, std::uint32_t row) {
    running.add_end({tasks.start_ns[row], tasks.end_ns[row]});
    if (tasks.submit_ns[row] != no_time) submitted.add_end({tasks.submit_ns[row], tasks.end_ns[row]});
  }
};

/// Adds the times in which some worker was idle.
void count_idle(Parallelism& result) {
  for_each_part(result.ready, result.idle_workers, result.makespan, [&](Interval part, std::int64_t tasks,
                                                                        std::int64_t workers) {
    if (workers == 0) return;
    result.idle_ns += part.length_ns();
    if (tasks == 0) result.starved_ns += part.length_ns();
  });
}

Parallelism count(std::uint32_t rank, const TimeSplit& split, Intervals intervals) {
  Parallelism result{.rank = rank,
                     .makespan = {split.begin_ns, split.end_ns()},
                     .submitted = StepFunction::count(std::move(intervals.submitted)),
                     .ready = StepFunction::count(std::move(intervals.ready)),
                     .running = StepFunction::count(std::move(intervals.running)),
                     .idle_workers = StepFunction::count(std::move(intervals.idle))};
  count_idle(result);
  return result;
}

Parallelism sum(const TimeSplit& split, const std::vector<Parallelism>& ranks) {
  const auto of = [&](StepFunction Parallelism::* member) {
    std::vector<const StepFunction*> functions;
    for (const Parallelism& rank : ranks) functions.push_back(&(rank.*member));
    return StepFunction::sum(functions);
  };
  Parallelism result{.makespan = {split.begin_ns, split.end_ns()},
                     .submitted = of(&Parallelism::submitted),
                     .ready = of(&Parallelism::ready),
                     .running = of(&Parallelism::running),
                     .idle_workers = of(&Parallelism::idle_workers)};
  count_idle(result);
  return result;
}

}  // namespace

RunParallelism parallelism(const History& history, const TimeSplit& split) {
  const TaskTable& tasks = history.tasks;
  const TasksOfRanks all(history), started(history, tasks.started()), ended(history, tasks.ended()),
      readied(history, tasks.readied());
  std::set<std::uint32_t> ranks;
  for (const WorkerTimes& worker : split.workers) ranks.insert(worker.rank);
  for (const std::uint32_t rank : all.ranks()) ranks.insert(rank);
  RunParallelism result;
  for (const std::uint32_t rank : ranks) {
    Intervals intervals(history.memory_of_tables());
    bool has_run = false;
    const auto add_with = [&](const TasksOfRanks& rows, void (Intervals::*add)(const TaskTable&, std::uint32_t)) {
      rows.for_each(rank, [&](std::uint32_t row) {
        if (!tasks.has_run(row)) return;
        has_run = true;
        (intervals.*add)(tasks, row);
      });
    };
    add_with(all, &Intervals::add_submitted);
    add_with(readied, &Intervals::add_ready);
    add_with(started, &Intervals::add_started);
    add_with(ended, &Intervals::add_ended);
    for_each_stretch_of(history, split, rank, [&](const Stretch& stretch) {
      if (is_idle(stretch.spent)) intervals.idle.add({stretch.start_ns, stretch.end_ns});
    });
    const bool has_workers = std::ranges::find(split.workers, rank, &WorkerTimes::rank) != split.workers.end();
    if (has_run || has_workers) result.ranks.push_back(count(rank, split, std::move(intervals)));
  }
  result.all = sum(split, result.ranks);
  return result;
}

}  // namespace tandem::analysis
