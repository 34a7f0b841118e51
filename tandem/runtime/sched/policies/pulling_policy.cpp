// tandem/runtime/sched/policies/pulling_policy.cpp: functions of pulling policies on ready tasks.
#include "tandem/runtime/sched/policies/pulling_policy.hpp"

#include <algorithm>

namespace tandem::runtime {

TaskView view_of(const OpenTask& task, const ReadyView& ready) {
  const ReadyKind& kind = ready.kind_of(task);
  return {.codelet = kind.codelet,
          .priority = task.priority,
          .footprint = kind.footprint,
          .accesses = ready.accesses(task),
          .workers = kind.workers,
          .alike = kind.given,
          .memory = kind.memory,
          .prefers_devices = kind.prefers_devices,
          .come = kind.come};
}

bool can_run(unsigned worker, const ReadyKind& kind, const LoadView& load) {
  return kind.workers.size() == load.workers.size() || std::ranges::binary_search(kind.workers, worker);
}

bool has_room(unsigned worker, const OpenTask& task, const ReadyView& ready, const LoadView& load) {
  const MachineWorker& here = load.machine.workers[worker];
  return ready.fits(task, here.node) &&
         (load.memory == nullptr || here.kind != DeviceKind::cpu || ready.bus_room(task, here.node).now != 0);
}

bool may_get(unsigned worker, const OpenTask& task, const ReadyView& ready, const LoadView& load) {
  return can_run(worker, ready.kind_of(task), load) && ready.works(worker) && has_room(worker, task, ready, load);
}

bool has_small_memory(unsigned worker, const ReadyView& ready, const LoadView& load) {
  const std::size_t budget = load.machine.nodes[load.machine.workers[worker].node].budget;
  return budget != 0 && budget < ready.bytes();
}

double ReadyKind::draw_on(DeviceKind kind) const noexcept {
  const KindWorkers* const some = workers_of(kind);
  return some != nullptr ? some->draw : 0;
}

bool PullingPolicy::holds(unsigned worker, const OpenTask& picked, std::span<const ArrivingTask> arriving,
                          const ReadyView& ready, const LoadView& load) const {
  const DeviceKind here = load.machine.workers[worker].kind;
  const double picked_ns = ready.kind_of(picked).kernel_on(here).mean_ns;
  for (const ArrivingTask& task : arriving) {
    const ReadyKind& kind = ready.kinds()[task.kind];
    const Estimate kernel = kind.kernel_on(here);
    if (task.priority <= picked.priority || !kernel.known || !std::ranges::binary_search(kind.workers, worker))
      continue;
    const double in_ns = static_cast<double>(std::max<std::int64_t>(task.due_ns - load.now_ns, 0));
    double end_ns = picked_ns + kernel.mean_ns;  // if the worker does not wait
    for (const unsigned other : kind.workers) {
      const Estimate there = kind.kernel_on(load.machine.workers[other].kind);
      if (other == worker || !there.known || !ready.works(other)) continue;
      end_ns = std::min(
          end_ns, std::max(static_cast<double>(load.workers[other].free_ns - load.now_ns), in_ns) + there.mean_ns);
    }
    if (end_ns - (in_ns + kernel.mean_ns) > in_ns) return true;
  }
  return false;
}

KindTimes times_of(const ReadyKind& kind, DeviceKind here) {
  KindTimes times;
  for (const KindWorkers& some : kind.by_kind) {
    if (some.kind == here) {
      times.here = some.kernel;
      times.draw_here = some.draw;
    } else if (some.kernel.known && some.kernel.mean_ns * (1 + some.draw) < times.elsewhere_cost()) {
      times.elsewhere_ns = some.kernel.mean_ns;
      times.draw_elsewhere = some.draw;
      times.elsewhere = some.count;
    }
  }
  return times;
}

double worth_ns(const KindTimes& times, double all_ns) {
  const double shared_ns = all_ns > times.elsewhere_ns ? times.elsewhere_ns / times.elsewhere : times.elsewhere_ns;
  const double draws_more_ns = times.here.mean_ns * times.draw_here - times.elsewhere_ns * times.draw_elsewhere;
  return std::min(all_ns - times.here.mean_ns, shared_ns) - draws_more_ns;
}

bool is_left_to_others(const ReadyKind& kind, const KindTimes& times) {
  if (!times.here.known) return true;
  if (times.elsewhere == 0) return false;
  return worth_ns(times, std::max(times.elsewhere_ns,
                                  static_cast<double>(kind.tasks.size()) * times.elsewhere_ns / times.elsewhere)) < 0;
}

}  // namespace tandem::runtime
