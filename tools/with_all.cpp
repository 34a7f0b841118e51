// tools/with_all.cpp: all subcommands.
#include "tools/subcommands.hpp"

namespace tandem::tools {

void add_all(Subcommand app, ToolContext& context) {
  add_bench(app, context);
  add_calibrate(app, context);
  add_config(app, context);
  add_contention(app, context);
  add_doctor(app, context);
  add_experiment(app, context);
  add_linalg(app, context);
  add_machine(app, context);
  add_models(app, context);
  add_replay(app, context);
  add_run(app, context);
  add_simulate(app, context);
  add_top(app, context);
  add_trace(app, context);
}

}  // namespace tandem::tools
