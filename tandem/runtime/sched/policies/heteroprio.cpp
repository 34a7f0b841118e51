// tandem/runtime/sched/policies/heteroprio.cpp: each worker takes the kind of tasks at which it is best, compared with
// the others.
#include "tandem/runtime/sched/policies/pulling_policy.hpp"

namespace tandem::runtime {
namespace {

/// HeteroPrio (Agullo, Bramas, Coulaud, Darve, Messner, Takahashi 2016), with an order of kinds by measured durations:
/// a worker takes the most urgent task of the kind that gains most from this worker. A kind that others run faster is
/// left to them as long as they would finish all its ready tasks before this worker finished one. With an aim at
/// energy, gains are in the cost of a task.
class HeteroPrio final : public PullingPolicy {
 public:
  std::string_view name() const noexcept override { return "heteroprio"; }
  std::string_view help() const noexcept override {
    return "where workers differ: each takes the tasks that gain most there";
  }
  bool uses_prices() const noexcept override { return false; }
  bool weighs_energy() const noexcept override { return true; }
  bool treats_alike() const noexcept override { return true; }

  const OpenTask* pick(unsigned worker, const ReadyView& ready, const LoadView& load) const override {
    const OpenTask* best = nullptr;
    double most = 0;
    for (const ReadyKind& kind : ready.kinds()) {
      if (kind.tasks.empty()) continue;
      const OpenTask& task = *kind.tasks.begin();
      if (!may_get(worker, task, ready, load)) continue;
      const KindTimes times = times_of(kind, load.machine.workers[worker].kind);
      if (is_left_to_others(kind, times)) continue;
      const double gain = times.gain();
      if (best != nullptr && (gain < most || (gain == most && *best < task))) continue;
      best = &task;
      most = gain;
    }
    return best;
  }
};

}  // namespace

std::unique_ptr<Policy> make_heteroprio() { return std::make_unique<HeteroPrio>(); }

}  // namespace tandem::runtime
