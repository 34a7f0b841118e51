// tandem/runtime/worker/energy.cpp: sources of powers, and the report by the machine's figures.
#include "tandem/runtime/worker/energy.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "tandem/runtime/sched/placing/placer.hpp"
#include "tandem/runtime/worker/duration_models.hpp"
#include "tandem/runtime/worker/worker.hpp"

namespace tandem::runtime {

Energy::Energy(World& world, const CoreOptions& options, const std::vector<WorkerSpec>& specs,
               const std::vector<std::unique_ptr<Worker>>& workers)
    : world_(world), specs_(specs), workers_(workers), began_ns_(world.clock->now_ns()) {
  if (MachinePowers::are_in(world.machine)) machine_powers_ = std::make_unique<MachinePowers>(world.machine);
  if (!world.energy.empty() || !options.powers.is_empty())
    learnt_powers_ = std::make_unique<LearntPowers>(specs, options.powers);
  if (world.energy.empty()) return;
  const auto busy = [this](unsigned worker, std::int64_t now_ns,
                           const std::function<void(std::string_view, double)>& visit) {
    workers_[worker]->measurements().visit_busy(
        now_ns, [&](const CodeletCore& codelet, double ns) { visit(codelet.name, ns); });
  };
  meter_ = std::make_unique<EnergyMeter>(std::move(world.energy), busy, options.energy_every_ns, began_ns_);
  meter_->tell(*learnt_powers_);
}

Energy::~Energy() = default;

void Energy::start() {
  if (meter_ != nullptr) world_.driver->add(*meter_, {.core = -1, .name = "tandem-energy"}).wake();
}

void Energy::finish(std::int64_t now_ns) {
  if (meter_ != nullptr) meter_->sample(now_ns);
}

void Energy::aim(Placer* placer, const CoreOptions& options) {
  if (options.objective == Objective::time) return;
  const std::string option =
      options.objective == Objective::energy ? "option objective=energy" : "option objective=edp";
  if (!world_.machine.is_mixed())
    return world_.log->warn("{} changes nothing: all workers are alike, so a task draws the same on each", option);
  if (placer == nullptr || !world_.policy->weighs_energy())
    return world_.log->warn(
        "{} changes nothing: scheduling policy {} does not count energy; option sched: plan, heteroprio, darts, dm, "
        "dmda, dmdar and dmdas do",
        option, world_.policy->name());
  const Powers* powers = world_.powers.get();
  if (powers == nullptr) powers = machine_powers_.get();
  if (powers == nullptr) powers = learnt_powers_.get();
  if (powers == nullptr)
    return world_.log->warn(
        "{}: tasks are placed by time, since nothing is known of what workers draw: no counter of energy can be read "
        "here "
        "(`tandem doctor` says why), and no earlier run with option models has measured it; running_watts and "
        "idle_watts of each "
        "worker in the file of option machine say it, too",
        option);
  placer->aim_at(options.objective, *powers);
}

EnergyReport Energy::report(std::int64_t now_ns) const {
  if (meter_ != nullptr) return meter_->report();
  return machine_powers_ != nullptr ? by_figures(now_ns) : EnergyReport();
}

EnergyReport Energy::by_figures(std::int64_t now_ns) const {
  EnergyReport report;
  const double seconds = static_cast<double>(now_ns - began_ns_) * 1e-9;
  std::map<std::pair<std::string, std::string>, KernelEnergy> kernels;
  for (unsigned i = 0; i < workers_.size(); ++i) {
    const std::string kind = kind_name(specs_[i]);
    auto of = std::ranges::find(report.kinds, kind, &KindEnergy::kind);
    if (of == report.kinds.end()) of = report.kinds.insert(of, {.kind = kind});
    if (!world_.machine.workers[i].power) continue;
    const WorkerPower power = *world_.machine.workers[i].power;
    of->idle.watts += power.idle_watts;
    of->idle.seconds = seconds;
    of->idle_joules += power.idle_watts * seconds;
    of->joules += power.idle_watts * seconds;
    workers_[i]->measurements().visit_durations([&](const CodeletCore& codelet, const DurationStatistics& durations) {
      KernelEnergy& kernel = kernels[{codelet.name, kind}];
      const double ran = durations.total_ns() * 1e-9, joules = (power.running_watts - power.idle_watts) * ran;
      kernel.joules += joules;
      kernel.watts.seconds += ran;
      of->joules += joules;
    });
  }
  for (auto& [key, kernel] : kernels) {
    kernel.codelet = key.first;
    kernel.kind = key.second;
    kernel.watts.watts = kernel.watts.seconds > 0 ? kernel.joules / kernel.watts.seconds : 0;
    report.kernels.push_back(std::move(kernel));
  }
  std::ranges::stable_sort(report.kernels, std::greater(), &KernelEnergy::joules);
  return report;
}

}  // namespace tandem::runtime
