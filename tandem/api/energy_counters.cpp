// tandem/api/energy_counters.cpp: asks the kernel and NVIDIA's driver for counters.
#include "tandem/api/energy_counters.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "tandem/base/energy_counter.hpp"
#include "tandem/base/nvml.hpp"
#include "tandem/runtime/worker/duration_models.hpp"

namespace tandem {

FoundEnergy find_energy(const runtime::World& world, const base::Config& config, unsigned ranks_here) {
  FoundEnergy found;
  base::EnergyCounters packages = base::find_powercap_counters(config.get_string("energy.powercap"));
  if (!packages.missing.empty())
    found.missing.push_back({"packages of the processor", packages.missing, packages.remedy});
  const std::vector<runtime::WorkerSpec> specs = world.worker_specs();
  if (!packages.counters.empty()) {
    runtime::EnergySource cores{
        .kind = "cpu", .workers = {}, .counters = std::move(packages.counters), .share = 1.0 / ranks_here};
    for (unsigned worker = 0; worker < specs.size(); ++worker)
      if (specs[worker].device == DeviceKind::cpu) cores.workers.push_back(worker);
    found.sources.push_back(std::move(cores));
  }
  std::optional<base::Result<std::shared_ptr<base::Nvml>>> nvml;  // loaded if there is a device
  for (unsigned worker = 0; worker < specs.size(); ++worker) {
    const runtime::MachineWorker& of = world.machine.workers[worker];
    if (of.kind == DeviceKind::cpu) continue;
    const std::string name =
        specs[worker].unit != nullptr ? specs[worker].unit->name() : runtime::kind_name(specs[worker]);
    if (of.kind != DeviceKind::cuda || of.bus_address.empty()) {
      found.missing.push_back({name, "Tandem knows no counters of such devices"});
      continue;
    }
    if (!nvml) nvml = base::Nvml::load(config.get_string("energy.nvml"));
    auto counter = nvml->ok() ? nvml->value()->counter_at(of.bus_address)
                              : base::Result<std::unique_ptr<base::EnergyCounter>>(nvml->error());
    if (!counter.ok()) {
      found.missing.push_back({name, counter.error().message});
      continue;
    }
    runtime::EnergySource device{.kind = runtime::kind_name(specs[worker]), .workers = {worker}, .counters = {}};
    device.counters.push_back(std::move(counter).value());
    found.sources.push_back(std::move(device));
  }
  return found;
}

bool counts_energy(const base::Config& config) {
  return config.get_bool("energy") &&
         (config.get_bool("stats") || config.get_bool("models") || !config.get_string("trace").empty() ||
          !config.get_string("report").empty() || objective_of(config) != runtime::Objective::time);
}

runtime::Objective objective_of(const base::Config& config) {
  const std::string& objective = config.get_string("objective");
  return objective == "energy" ? runtime::Objective::energy
         : objective == "edp"  ? runtime::Objective::edp
                               : runtime::Objective::time;
}

}  // namespace tandem
