// tandem/runtime/sched/placing_policy.cpp: what placing policies ask of a task and of a machine.
#include "tandem/runtime/sched/placing_policy.hpp"

#include <algorithm>
#include <bit>

namespace tandem::runtime {

Transfers transfers_to(const TaskView& task, const LoadView& load, NodeIndex node) {
  Transfers transfers{.ready_ns = load.now_ns};
  double waited_ns = 0;  // behind the link's other copies
  for (const AccessView& access : task.accesses) {
    if (!sees_value(access.mode) || access.valid == 0 || (access.valid >> node & 1U) != 0) continue;
    // The memory takes the value from the first node that has it.
    const LinkLoad& link = load.link(static_cast<NodeIndex>(std::countr_zero(access.valid)), node);
    if ((access.coming >> node & 1U) != 0) {
      transfers.ready_ns = std::max(transfers.ready_ns, link.free_ns);
      continue;
    }
    transfers.alone_ns += link.link.copy_ns(access.bytes);
    waited_ns = std::max(waited_ns, static_cast<double>(link.free_ns - load.now_ns));
  }
  if (transfers.alone_ns > 0)
    transfers.ready_ns = std::max(transfers.ready_ns, load.now_ns + static_cast<std::int64_t>(waited_ns + transfers.alone_ns));
  return transfers;
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
