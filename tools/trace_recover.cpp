// tools/trace_recover.cpp: `tandem trace recover`: completes the trace of a program that was killed.
#include <fmt/core.h>

#include "tandem/trace/recover.hpp"
#include "tools/trace_command.hpp"

namespace tandem::tools {

void add_trace_recover(Subcommand trace, ToolContext& context) {
  Subcommand command = trace.add_subcommand("recover", "Gather what a program that was killed left of its trace");
  const auto folder = trace_folder(command);
  auto options = std::make_shared<trace::RecoverOptions>();
  command.add_flag("--force", options->force, "Even though its process seems alive, or its live buffers are gone");
  command.callback([folder, options, &context] {
    const auto report = trace::recover_run(*folder, *options);
    if (!report) return fail(context, report.error());
    const trace::RecoverReport& done = report.value();
    if (done.ranks == 0) return fmt::print("nothing to recover: all ranks have ended their traces, or were recovered before\n");
    fmt::print("{} {} recovered: {} events in {} packets added, {} bytes of unfinished packets cut off\n", done.ranks,
               done.ranks == 1 ? "rank" : "ranks", done.events_added, done.packets_added, done.bytes_cut);
  });
}

}  // namespace tandem::tools
