// tandem/runtime/worker/world.cpp: adds workers, memories and devices to a world.
#include "tandem/runtime/worker/world.hpp"

#include <fmt/format.h>

#include "tandem/base/exceptions.hpp"

namespace tandem::runtime {

void World::add_cpu_workers(unsigned count) {
  for (unsigned i = 0; i < count; ++i) machine.workers.push_back({.kind = DeviceKind::cpu});
  machine.distance.assign(count, std::vector<unsigned>(count, 1));
}

void World::add_device(DeviceUnit unit) {
  if (unit.device == nullptr) throw UsageError("a device for the runtime is null");
  if (unit.kind == DeviceKind::cpu)
    throw UsageError(fmt::format(
        "device '{}' has kind cpu, which is for the runtime's own workers; give it another one", unit.device->name()));
  if (unit.device->depth() == 0)
    throw UsageError(fmt::format("device '{}' says that no task may be in flight there", unit.device->name()));
  MachineWorker worker{.kind = unit.kind, .bus_address = std::move(unit.bus_address)};
  if (unit.memory != nullptr) {
    if (machine.nodes.size() >= kMaxNodes)
      throw UsageError(fmt::format("device '{}' has a memory of its own, and there are {} already, which is the most",
                                   unit.device->name(), machine.nodes.size()));
    MachineNode node{.kind = NodeKind::device, .name = unit.memory->name(), .budget = unit.budget};
    worker.node = add_memory(std::move(node), std::move(unit.memory),
                             unit.copier != nullptr ? std::move(unit.copier) : make_processor_copier());
    if (unit.bytes_per_ns > 0) machine.add_links(0, worker.node, unit.bytes_per_ns, unit.latency_ns, LinkSource::given);
  }
  machine.workers.push_back(worker);
  set_device(static_cast<unsigned>(machine.workers.size()) - 1, std::move(unit.device));
}

NodeIndex World::add_memory(MachineNode node, std::unique_ptr<MemoryNode> memory, std::unique_ptr<Copier> copier) {
  const NodeIndex index = machine.add_node(std::move(node));
  nodes.emplace_back(std::move(memory), std::move(copier));
  return index;
}

std::unique_ptr<MemoryNode> World::make_main_memory() const {
  return page_locked != nullptr ? make_page_locked_memory(page_locked) : runtime::make_main_memory();
}

void World::set_device(unsigned worker, std::unique_ptr<Device> device) {
  if (devices.size() <= worker) devices.resize(worker + 1);
  devices[worker] = std::move(device);
}

std::vector<WorkerSpec> World::worker_specs() const {
  std::vector<WorkerSpec> specs;
  bool some_bind = false;
  for (unsigned i = 0; i < machine.workers.size(); ++i) {
    const MachineWorker& worker = machine.workers[i];
    specs.push_back({.device = worker.kind,
                     .node = worker.node,
                     .core = worker.core,
                     .numa_node = worker.numa_node,
                     .replicas_leave = machine.has_budgets(),
                     .unit = i < devices.size() ? devices[i].get() : nullptr});
    // A device may still work on a copy when the call of its kernel has returned.
    specs.back().binds_copies = specs.back().unit != nullptr || machine.nodes[worker.node].kind == NodeKind::device;
    some_bind = some_bind || specs.back().binds_copies;
  }
  for (WorkerSpec& spec : specs) spec.brings_copies = some_bind;
  return specs;
}

}  // namespace tandem::runtime
