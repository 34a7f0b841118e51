// tools/trace/summary_command.cpp: `tandem trace summary`: shows where the time of a run went, its bounds, and advice.
#include <memory>

#include <fmt/core.h>

#include "tandem/analysis/history/history.hpp"
#include "tandem/base/units.hpp"
#include "tools/trace/command.hpp"
#include "tools/trace/summary.hpp"

namespace tandem::tools {

using namespace analysis;

void add_trace_summary(Subcommand trace, ToolContext& context) {
  Subcommand command =
      trace.add_subcommand("summary", "Say where the time of a run went, what limits it, and what to try");
  const auto folder = trace_folder(command);
  const auto json = json_flag(command);
  const auto memory = std::make_shared<std::string>("1GiB");
  command
      .add_option("--memory", *memory,
                  "Main memory for tables; what is beyond lies in temporary files (in $TMPDIR, else /var/tmp)")
      .type_name("SIZE")
      .show_default()
      .check([](const std::string& text) {
        const auto bytes = base::parse_bytes(text);
        return bytes ? std::string() : bytes.error().message;
      });
  command.callback([folder, json, memory, &context] {
    const auto run = open_trace(*folder, context);
    if (run == nullptr) return;
    const auto bytes = base::parse_bytes(*memory).value();
    const auto history =
        History::read(*run, {.content = HistoryContent::summary, .memory = SpillOptions::of_main_memory(bytes)});
    if (!history) return fail(context, history.error());
    const RunNumbers numbers(*history.value());
    if (*json) return print_summary_json(*folder, numbers);
    print_summary_text(numbers);
    if (numbers.summary.split.makespan_ns > 0 && !numbers.summary.kinds.are_several())
      fmt::print("\nWhat changes would bring: tandem simulate --replay {} --what-if\n", *folder);
  });
}

}  // namespace tandem::tools
