// tandem/api/opencl_devices.hpp: the OpenCL devices that the options ask for.
#pragma once

#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem {

/// Adds devices by options `opencl`, `opencl.depth` and `opencl.memory`: a worker for each device, with its memory,
/// which the `sharers` ranks of this host divide. If there are fewer devices than the option asks for, a warning says
/// how many. Throws StartError if there is none, or OpenCL cannot be used.
void add_opencl_devices(runtime::World& world, const base::Config& config, base::Log& log, unsigned sharers = 1);

}  // namespace tandem
