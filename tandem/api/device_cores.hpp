// tandem/api/device_cores.hpp: binds the workers of devices to cores.
#pragma once

#include <filesystem>

#include "tandem/base/config.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem {

/// Binds the workers of devices as option `device_cores` says (factor B of the affinity paper). A list has a hardware
/// thread for each device, in their order. `near` takes for each device the first core at its NUMA node to which no
/// other worker is bound, else the last core there; devices with an unknown node stay unbound. `root` is "/", or a
/// test's folder. Throws StartError for another text, fewer hardware threads than devices, or one that this process may
/// not use.
void bind_device_workers(runtime::World& world, const base::Config& config, const base::Topology& topology,
                         base::Log& log, const std::filesystem::path& root = "/");

}  // namespace tandem
