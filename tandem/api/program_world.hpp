// tandem/api/program_world.hpp: the world of a program, with all devices that its options ask for.
#pragma once

#include <functional>
#include <vector>

#include "tandem/api/world.hpp"

namespace tandem {

/// Makes a world by `make_real_world`, with devices by options `opencl` and `cuda` and those of the program, their
/// workers bound by option `device_cores`, and the figures of option `machine`. `resources.topology` must be set
/// (`find_cores`). Throws StartError.
runtime::World make_program_world(const base::Config& config, WorldResources& resources,
                                  const std::vector<std::function<runtime::DeviceUnit()>>& devices = {});

}  // namespace tandem
