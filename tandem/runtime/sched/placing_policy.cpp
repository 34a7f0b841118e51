// tandem/runtime/sched/placing_policy.cpp: what placing policies ask of a task and of a machine.
#include "tandem/runtime/sched/placing_policy.hpp"

namespace tandem::runtime {

Transfers transfers_to(const TaskView& task, const LoadView& load, NodeIndex node) {
  const CopyTimes copies = copies_behind(task.accesses, load, node, 0, [](const AccessView&) { return false; });
  return {copies.alone_ns, load.now_ns + static_cast<std::int64_t>(copies.ready_ns)};
}

std::optional<unsigned> worker_to_try(const TaskView& task, const LoadView& load) {
  KernelTimes times(task, load);
  std::optional<unsigned> first;
  for (const unsigned worker : task.workers) {
    if (times.on(worker).known || (!task.alike.empty() && task.alike[worker] != 0)) continue;
    if (!first || load.workers[worker].free_ns < load.workers[*first].free_ns) first = worker;
  }
  return first;
}

unsigned earliest_end(const TaskView& task, const LoadView& load) {
  return cheapest(task, load, [&](unsigned worker, double kernel_ns) {
    return static_cast<double>(load.workers[worker].free_ns - load.now_ns) + kernel_ns;
  });
}

}  // namespace tandem::runtime
