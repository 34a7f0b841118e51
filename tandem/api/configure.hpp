// tandem/api/configure.hpp: declares the options of a runtime, and converts them for its parts.
#pragma once

#include "tandem/base/config.hpp"
#include "tandem/dist/flow_options.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem {

/// Declares every option that a runtime reads: the one source of names, types, defaults and help.
void register_options(base::Registry& registry);

/// The options of the runtime of one process.
runtime::CoreOptions core_options(const base::Config& config);
/// The options of the flow of several ranks.
dist::FlowOptions flow_options(const base::Config& config);

}  // namespace tandem
