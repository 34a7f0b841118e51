// tools/not_built.hpp: subcommands that a build of the command leaves out.
#pragma once

#include "tools/subcommands.hpp"

namespace tandem::tools {

/// Adds to `app` a subcommand that takes any arguments, and fails with an error that names `remedy` and exit status 2.
void add_not_built(Subcommand app, ToolContext& context, const char* name, const char* help, const char* remedy);

}  // namespace tandem::tools
