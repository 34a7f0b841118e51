// tandem/api/device_cores.cpp: reads option device_cores, and finds the NUMA nodes of devices.
#include "tandem/api/device_cores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tandem/api/number_in_file.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/base/pu_list.hpp"

namespace tandem {
namespace {

using base::CoreId;
using runtime::MachineWorker;

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw StartError(
      fmt::format("option device_cores is '{}', and {}; give a list such as 3,7, or near, or leave it out", text, why));
}

std::optional<CoreId> core_of_pu(const base::Topology& topology, unsigned pu) {
  for (const base::Core& core : topology.cores())
    if (std::ranges::find(core.pus, pu) != core.pus.end()) return core.id;
  return {};
}

void bind(MachineWorker& worker, CoreId core, const base::Topology& topology) {
  worker.core = static_cast<int>(core.value());
  worker.numa_node = static_cast<unsigned>(topology.numa_place_of(core));
}

/// The operating system's number of the NUMA node at which a device is.
std::optional<unsigned> numa_node_of(const MachineWorker& worker, const std::filesystem::path& root) {
  if (worker.bus_address.empty()) return {};
  const auto node = internal::number_in_file(root / "sys/bus/pci/devices" / worker.bus_address / "numa_node");
  return node && *node >= 0 ? std::optional(static_cast<unsigned>(*node)) : std::nullopt;
}

std::optional<CoreId> core_near(unsigned numa_node, const runtime::Machine& machine, const base::Topology& topology) {
  std::optional<CoreId> last;
  for (const base::Core& core : topology.cores()) {
    if (core.numa_node != numa_node) continue;
    last = core.id;
    const auto is_there = [&](const MachineWorker& worker) { return worker.core == static_cast<int>(core.id.value()); };
    if (std::ranges::none_of(machine.workers, is_there)) return last;
  }
  return last;
}

}  // namespace

void bind_device_workers(runtime::World& world, const base::Config& config, const base::Topology& topology,
                         base::Log& log, const std::filesystem::path& root) {
  const std::string text = config.get_string("device_cores");
  if (text.empty()) return;
  runtime::Machine& machine = world.machine;
  std::vector<MachineWorker*> workers;
  for (MachineWorker& worker : machine.workers)
    if (worker.kind != DeviceKind::cpu) workers.push_back(&worker);
  if (text == "near") {
    for (MachineWorker* const worker : workers) {
      const auto node = numa_node_of(*worker, root);
      const auto core = node ? core_near(*node, machine, topology) : std::nullopt;
      if (core) bind(*worker, *core, topology);
      else log.info("the worker of {} is not bound: {}", machine.nodes[worker->node].name,
                    node ? "no core that this process may use is near it" : "its NUMA node is not known");
    }
    return;
  }
  const auto pus = base::parse_pu_list(text);
  if (!pus.ok()) refuse(text, pus.error().message);
  if (pus.value().size() < workers.size())
    refuse(text,
           fmt::format("there are {} devices and {} hardware threads for them", workers.size(), pus.value().size()));
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto core = core_of_pu(topology, pus.value()[i]);
    if (!core) refuse(text, fmt::format("this process may not use hardware thread {}", pus.value()[i]));
    bind(*workers[i], *core, topology);
  }
}

}  // namespace tandem
