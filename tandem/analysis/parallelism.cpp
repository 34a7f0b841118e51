// tandem/analysis/parallelism.cpp: how many tasks were submitted, ready and running, over time.
#include "tandem/analysis/parallelism.hpp"

#include <vector>

namespace tandem::analysis {

Parallelism parallelism(const History& history, const TimeSplit& split, std::optional<std::uint32_t> rank) {
  std::vector<Interval> submitted, ready, running, idle;
  for (const TaskRow& task : history.tasks) {
    if (!task.has_run() || (rank && task.rank != *rank)) continue;
    running.push_back({task.start_ns, task.end_ns});
    if (task.submit_ns != no_time) submitted.push_back({task.submit_ns, task.end_ns});
    if (task.ready_ns != no_time) ready.push_back({task.ready_ns, task.start_ns});
  }
  for_each_stretch(history, split, [&](const Stretch& stretch) {
    if (is_idle(stretch.spent) && (!rank || stretch.rank == *rank)) idle.push_back({stretch.start_ns, stretch.end_ns});
  });
  Parallelism result{.makespan = {split.begin_ns, split.end_ns()},
                     .submitted = StepFunction::count(submitted),
                     .ready = StepFunction::count(ready),
                     .running = StepFunction::count(running),
                     .idle_workers = StepFunction::count(idle)};
  for_each_part(result.ready, result.idle_workers, result.makespan, [&](Interval part, std::int64_t tasks, std::int64_t workers) {
    if (workers == 0) return;
    result.idle_ns += part.length_ns();
    if (tasks == 0) result.starved_ns += part.length_ns();
  });
  return result;
}

}  // namespace tandem::analysis
