// tandem/api/machine_option.hpp: options machine and machine.save: reads figures of memories and links from a file, or
// measures them for one.
#pragma once

#include <string>
#include <vector>

#include "tandem/api/world.hpp"
#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/runtime/worker/link_curves.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem {

/// With option `machine`: gives `world`, whose workers and memories all exist, the names of memories, the budgets of
/// devices' memories, and the links and networks of that file. Budgets of options opencl.memory and cuda.memory stay.
/// Throws StartError: the file cannot be read, or describes another machine.
void take_described_machine(runtime::World& world, const base::Config& config, base::Log& log);

/// Options of a measurement of links on the cores of `topology`, which outlives it.
runtime::LinkCurveOptions link_curve_options(const base::Topology& topology);

/// With option `machine.save`, when all workers and memories of `world` exist: measures the links between the memories
/// as `tandem machine --links` does, including those of the program's own devices, which that command cannot know.
/// `world` gets the figures, and the file its machine. Logged at level `info`. Throws StartError: the file cannot be
/// written.
void save_measured_machine(runtime::World& world, const base::Config& config, const WorldResources& resources);

/// Name of this machine in the file of a machine, for people.
std::string found_on(const base::Topology& topology);

/// Networks of `machine`, for an endpoint.
std::vector<comm::KnownNetwork> known_networks(const runtime::Machine& machine);

}  // namespace tandem
