// tandem/api/machine_option.hpp: options machine and machine.save: figures of memories and links from a file, and measured into one.
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

/// With option `machine`: `world`, whose workers and memories are all there, gets the names of memories, the budgets of devices' memories and the
/// links and networks of that file. Budgets that options opencl.memory and cuda.memory give stay. Throws StartError: the file cannot be read, or describes another
/// machine.
void take_described_machine(runtime::World& world, const base::Config& config, base::Log& log);

/// How links are measured on the cores of `topology`, which outlives that.
runtime::LinkCurveOptions link_curve_options(const base::Topology& topology);

/// With option `machine.save`, when all workers and memories of `world` are there: measures the links between the memories as `tandem machine --links` does, those of
/// the program's own devices among them, which that command cannot know; `world` has the figures, and the file has its machine. Told at log level `info`.
/// Throws StartError: the file cannot be written.
void save_measured_machine(runtime::World& world, const base::Config& config, const WorldResources& resources);

/// How the file of a machine calls this one, for people.
std::string found_on(const base::Topology& topology);

/// What `machine` says of messages, for an endpoint.
std::vector<comm::KnownNetwork> known_networks(const runtime::Machine& machine);

}  // namespace tandem
