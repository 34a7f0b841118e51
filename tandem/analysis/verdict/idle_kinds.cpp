// tandem/analysis/verdict/idle_kinds.cpp: for each kind of worker, its idle times beside the tasks that it could have
// run.
#include "tandem/analysis/verdict/idle_kinds.hpp"

#include <set>
#include <utility>

#include "tandem/analysis/history/tasks_of_ranks.hpp"
#include "tandem/analysis/tables/step_function.hpp"
#include "tandem/analysis/verdict/worker_kinds.hpp"

namespace tandem::analysis {

std::vector<IdleKind> idle_kinds(const History& history, const TimeSplit& split,
                                 const std::vector<KernelProfile>& kernels) {
  const WorkerKinds kinds(history);
  std::vector<IdleKind> result;
  if (!kinds.are_several()) return result;
  std::set<std::pair<std::uint32_t, Texts::Id>> runs;  // a kind of workers has run a codelet
  for (const KernelProfile& kernel : kernels)
    for (const KernelOnKind& on : kernel.kinds) runs.insert({on.kind, kernel.codelet});
  std::set<std::uint32_t> ranks;
  for (const WorkerTimes& worker : split.workers) ranks.insert(worker.rank);
  const TaskTable& tasks = history.tasks;
  const TasksOfRanks readied(history, tasks.readied());
  const Interval makespan{split.begin_ns, split.end_ns()};
  for (std::uint32_t kind = 0; kind < kinds.names().size(); ++kind) {
    IdleKind& of = result.emplace_back();
    of.kind = kind;
    for (const std::uint32_t rank : ranks) {
      IntervalList can_run(history.memory_of_tables());
      readied.for_each(rank, [&](std::uint32_t row) {
        if (tasks.has_run(row) && runs.contains({kind, tasks.codelet(row)}))
          can_run.add({tasks.ready_ns[row], tasks.start_ns[row]});
      });
      const StepFunction its = StepFunction::count(std::move(can_run));
      IntervalList ready_elsewhere(history.memory_of_tables()), awaiting_memory(history.memory_of_tables());
      for_each_stretch_of(history, split, rank, [&](const Stretch& stretch) {
        if (stretch.spent != Spent::ready_elsewhere && stretch.spent != Spent::awaiting_memory) return;
        if (kinds.of(rank, history.find_actor(rank, stretch.actor)->index) != kind) return;
        (stretch.spent == Spent::awaiting_memory ? awaiting_memory : ready_elsewhere)
            .add({stretch.start_ns, stretch.end_ns});
      });
      const auto add_idle = [&](Spent spent, IntervalList&& idle) {
        for_each_part(its, StepFunction::count(std::move(idle)), makespan, [&](Interval part, std::int64_t ready,
                                                                               std::int64_t workers) {
          if (ready == 0) of.ns[static_cast<std::size_t>(spent)] += part.length_ns() * workers;
        });
      };
      add_idle(Spent::ready_elsewhere, std::move(ready_elsewhere));
      add_idle(Spent::awaiting_memory, std::move(awaiting_memory));
    }
  }
  return result;
}

}  // namespace tandem::analysis
