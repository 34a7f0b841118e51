// tandem/runtime/sched/policies/dmda.hpp: gives each task to the worker that ends it first, copies of its data
// included.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "tandem/runtime/sched/policies/placing_policy.hpp"

namespace tandem::runtime {

/// What `dmda`, `dmdas` and `dmdar` have in common, after StarPU's policies of these names. The worker w, in memory m,
/// with the least
///
///     max(free(w) + copies(m), ready(m)) + kernel(w)
///
/// gets the task: `copies` is the time of the task's copies to m, and `ready` the end of these copies. Copies count
/// though they may overlap kernels of other tasks, so that of two workers with the same end the one with the data gets
/// it. With an aim at energy, `least_energy` decides.
class EarliestEndWithData : public PlacingPolicy {
 public:
  bool weighs_energy() const noexcept final { return true; }
  unsigned choose(const TaskView& task, const LoadView& load) const final {
    if (const auto worker = worker_to_try(task, load)) return *worker;
    if (load.energy != nullptr) [[unlikely]]
      if (const auto worker = least_energy(task, load, true)) return *worker;
    std::array<std::optional<Transfers>, kMaxNodes> known;
    return cheapest(task, load, [&](unsigned worker, double kernel_ns) {
      const NodeIndex node = load.machine.workers[worker].node;
      if (!known[node]) known[node] = transfers_to(task, load, node);
      const double free_ns = static_cast<double>(load.workers[worker].free_ns - load.now_ns);
      const double ready_ns = static_cast<double>(known[node]->ready_ns - load.now_ns);
      return std::max(free_ns + known[node]->alone_ns, ready_ns) + kernel_ns;
    });
  }
};

}  // namespace tandem::runtime
