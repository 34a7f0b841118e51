// tools/contention/measure.hpp: `tandem contention measure`.
#pragma once

#include "tools/subcommands.hpp"

namespace tandem::tools::contention {

/// Adds the subcommand. Outside of a job it starts itself as two ranks on this host.
void add_measure(Subcommand contention, ToolContext& context);

}  // namespace tandem::tools::contention
