// tools/not_built.cpp: the subcommands that this build of the command leaves out. Each says so, and what to build.
#include "tools/not_built.hpp"

#include <fmt/core.h>

namespace tandem::tools {

void add_not_built(Subcommand app, ToolContext& context, const char* name, const char* help, const char* remedy) {
  Subcommand command = app.add_subcommand(name, fmt::format("{} (not in this build)", help));
  command.take_program("Its arguments");
  command.callback([&context, name, remedy] {
    context.log.error("this build of the command has no `tandem {}`: {}", name, remedy);
    context.exit_status = 2;
  });
}

}  // namespace tandem::tools
