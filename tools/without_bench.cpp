// tools/without_bench.cpp: `tandem bench` of a command that was built without the benchmarks.
#include "tools/subcommands.hpp"

namespace tandem::tools {

void add_bench(Subcommand app, ToolContext& context) {
  Subcommand bench = app.add_subcommand("bench", "Measure Tandem and comparable programs in turns (not in this build)");
  bench.take_program("What to measure");
  bench.callback([&context] {
    context.log.error("this command was built without the benchmarks: configure with -D TANDEM_BENCHMARKS=ON, as `make build` does, "
                      "and build again");
    context.exit_status = 2;
  });
}

}  // namespace tandem::tools
