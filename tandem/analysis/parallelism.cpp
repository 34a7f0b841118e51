// tandem/analysis/parallelism.cpp: how many tasks were submitted, ready and running, over time.
#include "tandem/analysis/parallelism.hpp"

#include <map>

namespace tandem::analysis {
namespace {

struct Intervals {
  std::vector<Interval> submitted, ready, running, idle;

  void add(const TaskRow& task) {
    running.push_back({task.start_ns, task.end_ns});
    if (task.submit_ns != no_time) submitted.push_back({task.submit_ns, task.end_ns});
    if (task.ready_ns != no_time) ready.push_back({task.ready_ns, task.start_ns});
  }
};

/// Adds the times in which some worker was idle.
void count_idle(Parallelism& result) {
  for_each_part(result.ready, result.idle_workers, result.makespan, [&](Interval part, std::int64_t tasks, std::int64_t workers) {
    if (workers == 0) return;
    result.idle_ns += part.length_ns();
    if (tasks == 0) result.starved_ns += part.length_ns();
  });
}

Parallelism count(std::uint32_t rank, const TimeSplit& split, const Intervals& intervals) {
  Parallelism result{.rank = rank,
                     .makespan = {split.begin_ns, split.end_ns()},
                     .submitted = StepFunction::count(intervals.submitted),
                     .ready = StepFunction::count(intervals.ready),
                     .running = StepFunction::count(intervals.running),
                     .idle_workers = StepFunction::count(intervals.idle)};
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
  std::map<std::uint32_t, Intervals> of_rank;
  for (const WorkerTimes& worker : split.workers) of_rank[worker.rank];
  for (const TaskRow& task : history.tasks)
    if (task.has_run()) of_rank[task.rank].add(task);
  for_each_stretch(history, split, [&](const Stretch& stretch) {
    if (is_idle(stretch.spent)) of_rank[stretch.rank].idle.push_back({stretch.start_ns, stretch.end_ns});
  });
  RunParallelism result;
  for (auto& [rank, intervals] : of_rank) {
    result.ranks.push_back(count(rank, split, intervals));
    intervals = {};
  }
  result.all = sum(split, result.ranks);
  return result;
}

}  // namespace tandem::analysis
