// tools/with_few.cpp: the subcommands of a command that is built to run programs alone (TANDEM_ALL_COMMANDS=OFF), as
// `make demo` does.
#include "tools/not_built.hpp"

namespace tandem::tools {

void add_all(Subcommand app, ToolContext& context) {
  const auto without = [&](const char* name, const char* help) {
    add_not_built(app, context, name, help,
                  "configure with -D TANDEM_ALL_COMMANDS=ON, as `make build` does, and build again");
  };
  without("bench", "Measure Tandem and comparable programs in turns");
  without("calibrate", "Run a program here, and write all that a simulation of it needs");
  add_config(app, context);
  without("contention", "Measure and model how computation and communication share memory");
  without("doctor", "Find what would go wrong on this host, and say what to do");
  add_linalg(app, context);
  without("machine", "Show the processor, the memory and the caches, and where workers would run");
  without("models", "Show, compare and prune what was learnt of the durations of tasks");
  without("replay", "Run a program again as a trace has recorded it, each task on its worker and in its order");
  add_run(app, context);
  without("simulate", "Predict how long a program takes on many ranks, by running it in virtual time");
  without("top", "Show what a run does while it runs: workers, tasks, kernels, messages, what waits");
  without("trace", "Show, check, export or archive the trace of a run");
}

}  // namespace tandem::tools
