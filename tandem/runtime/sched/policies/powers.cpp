// tandem/runtime/sched/policies/powers.cpp: the powers of a machine's workers, and the price of time.
#include "tandem/runtime/sched/policies/powers.hpp"

#include <algorithm>

namespace tandem::runtime {

MachinePowers::MachinePowers(const Machine& machine) {
  for (const MachineWorker& worker : machine.workers) {
    if (!worker.power) continue;
    auto known = std::ranges::find(kinds_, worker.kind, &OfKind::kind);
    if (known == kinds_.end()) known = kinds_.insert(known, {worker.kind});
    ++known->workers;
    known->watts += (worker.power->running_watts - worker.power->idle_watts - known->watts) / known->workers;
    idle_watts_ += worker.power->idle_watts;
    full_watts_ += worker.power->running_watts;
  }
}

bool MachinePowers::are_in(const Machine& machine) {
  return std::ranges::all_of(machine.workers, [&](const MachineWorker& worker) {
    return std::ranges::any_of(machine.workers,
                               [&](const MachineWorker& other) { return other.kind == worker.kind && other.power; });
  });
}

std::optional<double> MachinePowers::kernel_watts(std::string_view, DeviceKind kind) const {
  const auto known = std::ranges::find(kinds_, kind, &OfKind::kind);
  return known != kinds_.end() ? std::optional(known->watts) : std::nullopt;
}

EnergyAim EnergyAim::of(Objective objective, const Powers& powers) {
  // If an idle machine draws nothing, time still has a small price: of two schedules with the same energy the shorter
  // one is better.
  const double full = powers.full_watts(), least = std::max(0.01 * full, 1e-6);
  const double late = powers.idle_watts() + (objective == Objective::edp ? full : 0);
  return {.powers = &powers, .late_watts = std::max(late, least)};
}

}  // namespace tandem::runtime
