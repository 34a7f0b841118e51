// tools/bench/without_bench.cpp: `tandem bench` of a command that was built without the benchmarks.
#include "tools/not_built.hpp"

namespace tandem::tools {

void add_bench(Subcommand app, ToolContext& context) {
  add_not_built(app, context, "bench", "Measure Tandem and comparable programs in turns",
                "configure with -D TANDEM_BENCHMARKS=ON, as `make build` does, and build again");
}

}  // namespace tandem::tools
