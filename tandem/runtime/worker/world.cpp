// tandem/runtime/worker/world.cpp: devices of a world.
#include "tandem/runtime/worker/world.hpp"

#include <fmt/format.h>

#include "tandem/base/exceptions.hpp"

namespace tandem::runtime {

void World::add_device(DeviceUnit unit) {
  if (unit.device == nullptr) throw UsageError("a device for the runtime is null");
  if (unit.kind == DeviceKind::cpu)
    throw UsageError(fmt::format("device '{}' has kind cpu, which is for the runtime's own workers; give it another one", unit.device->name()));
  if (unit.device->depth() == 0) throw UsageError(fmt::format("device '{}' says that no task may be in flight there", unit.device->name()));
  WorkerSpec spec;
  spec.device = unit.kind;
  if (unit.memory != nullptr) {
    if (nodes.size() + 1 >= kMaxNodes)
      throw UsageError(fmt::format("device '{}' has a memory of its own, and there are {} already, which is the most", unit.device->name(), nodes.size() + 1));
    nodes.emplace_back(std::move(unit.memory), unit.copier != nullptr ? std::move(unit.copier) : make_processor_copier());
    spec.node = static_cast<NodeIndex>(nodes.size());
    if (budgets.size() <= spec.node) budgets.resize(spec.node + 1, 0);
    budgets[spec.node] = unit.budget;
  }
  spec.unit = unit.device.get();
  workers.push_back(spec);
  devices.push_back(std::move(unit.device));
}

}  // namespace tandem::runtime
