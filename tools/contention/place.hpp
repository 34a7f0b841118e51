// tools/contention/place.hpp: `tandem contention place`.
#pragma once

#include "tools/subcommands.hpp"

namespace tandem::tools::contention {

/// Adds the subcommand: where memory for messages should lie, by the models of machines, and the gain.
void add_place(Subcommand contention, ToolContext& context);

}  // namespace tandem::tools::contention
