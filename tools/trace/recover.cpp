// tools/trace/recover.cpp: `tandem trace recover`: completes the trace of a killed program.
#include <fmt/core.h>

#include "tandem/trace/recover.hpp"
#include "tools/counted.hpp"
#include "tools/trace/command.hpp"

namespace tandem::tools {

void add_trace_recover(Subcommand trace, ToolContext& context) {
  Subcommand command = trace.add_subcommand("recover", "Complete the trace of a program that was killed");
  const auto folder = trace_folder(command);
  auto options = std::make_shared<trace::RecoverOptions>();
  command.add_flag("--force", options->force,
                   "Recover even if the process seems alive, or its buffers in memory are gone");
  command.callback([folder, options, &context] {
    const auto report = trace::recover_run(*folder, *options);
    if (!report) return fail(context, report.error());
    const trace::RecoverReport& done = report.value();
    if (done.ranks == 0) return fmt::print("nothing to recover: the traces of all ranks are complete\n");
    fmt::print("{} recovered: {} in {} added, {} of unfinished packets cut off\n", counted(done.ranks, "rank"),
               counted(done.events_added, "event"), counted(done.packets_added, "packet"),
               counted(done.bytes_cut, "byte"));
  });
}

}  // namespace tandem::tools
