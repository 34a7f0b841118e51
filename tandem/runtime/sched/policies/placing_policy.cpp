// tandem/runtime/sched/policies/placing_policy.cpp: functions of placing policies on a task and a machine.
#include "tandem/runtime/sched/policies/placing_policy.hpp"

namespace tandem::runtime {

Transfers transfers_to(const TaskView& task, const LoadView& load, NodeIndex node) {
  CopyQueue queue;
  for (const AccessView& access : task.accesses)
    if (access.is_missing(node)) queue.add(access, load.link(access.source(), node), load);
  const CopyTimes copies = queue.behind(0);
  return {copies.alone_ns, load.now_ns + static_cast<std::int64_t>(copies.ready_ns)};
}

unsigned tasks_on_cores(std::span<const unsigned> workers, std::span<const std::uint32_t> alike,
                        const Machine& machine) noexcept {
  unsigned count = 0;
  for (const unsigned worker : workers)
    if (machine.workers[worker].kind == DeviceKind::cpu) count += alike[worker];
  return count;
}

namespace {

/// Whether a core may try one more `task`, which prefers devices.
bool may_try_on_a_core(const TaskView& task, const LoadView& load, KernelTimes& times, const Estimate& on_core) {
  std::size_t devices = 0, wait = 0;
  for (const unsigned worker : task.workers) {
    if (load.machine.workers[worker].kind == DeviceKind::cpu || !times.on(worker).known) continue;
    ++devices;
    if (!task.alike.empty()) wait += task.alike[worker];
  }
  return may_try_on_cores(devices, wait, task.come) &&
         (task.alike.empty() || trials_left(on_core, tasks_on_cores(task.workers, task.alike, load.machine)) != 0);
}

}  // namespace

std::optional<unsigned> worker_to_try(const TaskView& task, const LoadView& load) {
  KernelTimes times(task, load);
  std::optional<unsigned> first;
  for (const unsigned worker : task.workers) {
    const Estimate kernel = times.on(worker);
    if (kernel.known || (!task.alike.empty() && task.alike[worker] != 0)) continue;
    if (first && load.workers[worker].free_ns >= load.workers[*first].free_ns) continue;
    if (task.prefers_devices && load.machine.workers[worker].kind == DeviceKind::cpu &&
        !may_try_on_a_core(task, load, times, kernel))
      continue;
    first = worker;
  }
  return first;
}

unsigned earliest_end(const TaskView& task, const LoadView& load) {
  return cheapest(task, load, [&](unsigned worker, double kernel_ns) {
    return static_cast<double>(load.workers[worker].free_ns - load.now_ns) + kernel_ns;
  });
}

namespace {

/// Time until `worker` ends the task.
double end_ns(const TaskView& task, const LoadView& load, unsigned worker, double kernel_ns, bool with_copies) {
  const double free_ns = static_cast<double>(load.workers[worker].free_ns - load.now_ns);
  if (!with_copies) return free_ns + kernel_ns;
  const Transfers transfers = transfers_to(task, load, load.machine.workers[worker].node);
  return std::max(free_ns + transfers.alone_ns, static_cast<double>(transfers.ready_ns - load.now_ns)) + kernel_ns;
}

/// Load of the workers of one kind, as a task finds it.
struct KindLoad {
  DeviceKind kind;
  Estimate kernel;
  std::optional<double> watts;  ///< power of the kernel
  double sharing = 1;           ///< number of workers that share the delay of the end
};

/// While some worker of the kind is idle, there are few tasks, and a task that ends later than all others delays the
/// end. When all workers have tasks, more will come, and these fill the time on the others.
KindLoad load_of(DeviceKind kind, const Estimate& kernel, const TaskView& task, const LoadView& load) {
  KindLoad of{.kind = kind, .kernel = kernel, .watts = load.energy->powers->kernel_watts(task.codelet, kind)};
  unsigned workers = 0;
  for (const unsigned worker : task.workers) {
    if (load.machine.workers[worker].kind != kind) continue;
    if (load.workers[worker].free_ns <= load.now_ns) return of;
    ++workers;
  }
  of.sharing = std::max(1U, workers);
  return of;
}

}  // namespace

std::optional<unsigned> least_energy(const TaskView& task, const LoadView& load, bool with_copies) {
  constexpr double as_little = 1.01;
  std::int64_t all_end_ns = load.now_ns;
  for (const WorkerLoad& worker : load.workers) all_end_ns = std::max(all_end_ns, worker.free_ns);
  const double all_ns = static_cast<double>(all_end_ns - load.now_ns);
  std::optional<KindLoad> here;
  std::optional<unsigned> best;
  double least = 0, best_end = 0;
  KernelTimes times(task, load);
  for (const unsigned worker : task.workers) {
    const DeviceKind kind = load.machine.workers[worker].kind;
    if (!here || here->kind != kind) here = load_of(kind, times.on(worker), task, load);
    if (!here->kernel.known) continue;
    if (!here->watts) return {};
    const double end = end_ns(task, load, worker, here->kernel.mean_ns, with_copies);
    const double cost =
        *here->watts * here->kernel.mean_ns + load.energy->late_watts * std::max(0.0, end - all_ns) / here->sharing;
    // Among nearly equal costs, the worker that ends it first is best.
    if (best && (cost > as_little * least || (cost * as_little >= least && end >= best_end))) continue;
    best = worker;
    least = cost;
    best_end = end;
  }
  return best;
}

}  // namespace tandem::runtime
