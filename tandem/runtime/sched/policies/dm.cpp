// tandem/runtime/sched/policies/dm.cpp: gives each task to the worker that ends it first.
#include "tandem/runtime/sched/policies/placing_policy.hpp"

namespace tandem::runtime {
namespace {

/// StarPU's `dm`, the earliest finish time of HEFT (Topcuoglu, Hariri, Wu 2002) without regard to the data: the worker
/// w with the least
///
///     free(w) + kernel(w)
///
/// gets the task, and runs its tasks in the order in which they came.
class EarliestEnd final : public PlacingPolicy {
 public:
  std::string_view name() const noexcept override { return "dm"; }
  std::string_view help() const noexcept override {
    return "where workers differ: to the one that ends a task first, by measured durations";
  }
  bool by_priority() const noexcept override { return false; }
  bool weighs_energy() const noexcept override { return true; }
  unsigned choose(const TaskView& task, const LoadView& load) const override {
    if (const auto worker = worker_to_try(task, load)) return *worker;
    if (load.energy != nullptr) [[unlikely]]
      if (const auto worker = least_energy(task, load, false)) return *worker;
    return earliest_end(task, load);
  }
};

}  // namespace

std::unique_ptr<Policy> make_dm() { return std::make_unique<EarliestEnd>(); }

}  // namespace tandem::runtime
