// tools/simulate/replay.hpp: `tandem simulate --replay`: a traced run once more, on this or another platform.
#pragma once

#include <cstdint>
#include <string>

#include "tools/simulate/scene.hpp"
#include "tools/subcommands.hpp"

namespace tandem::tools {

struct ReplayArguments {
  std::string trace;  ///< folder
  SceneArguments scene;
  std::uint64_t seed = 1;
  bool what_if = false;  ///< with usual changes, each by itself
  bool json = false;
};

/// Simulates the run of a trace and prints how long it takes, beside what was recorded, and with changes.
/// Errors: those of the trace and of the scene; what went wrong in the simulation.
base::Result<void> replay(ReplayArguments arguments, const base::Topology& topology, ToolContext& context);

}  // namespace tandem::tools
