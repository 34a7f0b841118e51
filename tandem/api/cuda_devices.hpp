// tandem/api/cuda_devices.hpp: the CUDA devices that the options ask for.
#pragma once

#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem {

/// By option `cuda` and those whose names begin with `cuda.`: a worker for each device, with its memory, which the
/// `sharers` ranks of this host divide. With fewer devices than the option asks for a warning says how many there are.
/// Throws StartError when there is none, or CUDA cannot be used.
void add_cuda_devices(runtime::World& world, const base::Config& config, base::Log& log, unsigned sharers = 1);

}  // namespace tandem
