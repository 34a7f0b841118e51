// tandem/api/machine_option.hpp: option machine: figures of memories and links from a file.
#pragma once

#include <vector>

#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem {

/// With option `machine`: `world`, whose workers and memories are all there, gets the names of memories, the budgets of devices' memories and the
/// links and networks of that file. Budgets that options opencl.memory and cuda.memory give stay. Throws StartError: the file cannot be read, or describes another
/// machine.
void take_described_machine(runtime::World& world, const base::Config& config, base::Log& log);

/// What `machine` says of messages, for an endpoint.
std::vector<comm::KnownNetwork> known_networks(const runtime::Machine& machine);

}  // namespace tandem
