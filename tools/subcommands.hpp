// tools/subcommands.hpp: the subcommands of `tandem`, and what each is given.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"

namespace tandem::tools {

/// What main() has prepared. Outlives the parsing of the command line. A subcommand's callback prints to standard output, logs to
/// standard error, and sets `exit_status` when it fails: 1 for a failure, 2 for a wrong use.
struct ToolContext {
  const base::Config& config;          ///< from tandem.toml, the environment and --tandem.* arguments
  std::vector<std::string> arguments;  ///< the whole command line as given, --tandem.* included
  base::Log& log;
  int exit_status = 0;
};

// To add a subcommand, write NAME_command.cpp with add_NAME, declare it here, and call it in main.cpp. Each adds a CLI11
// subcommand to `app` whose callback runs it.
void add_bench(CLI::App& app, ToolContext& context);
void add_bench_arrival(CLI::App& bench, ToolContext& context);  ///< below `bench`
void add_bench_bcast(CLI::App& bench, ToolContext& context);  ///< below `bench`
void add_bench_broadcasts(CLI::App& bench, ToolContext& context);  ///< below `bench`
void add_bench_burst(CLI::App& bench, ToolContext& context);  ///< below `bench`
void add_bench_clock(CLI::App& bench, ToolContext& context);  ///< below `bench`
void add_bench_flow_pingpong(CLI::App& bench, ToolContext& context);  ///< below `bench`
void add_bench_flushes(CLI::App& bench, ToolContext& context);  ///< below `bench`
void add_bench_overlap(CLI::App& bench, ToolContext& context);  ///< below `bench`
void add_bench_ranks(CLI::App& bench, ToolContext& context);    ///< below `bench`
void add_bench_readers(CLI::App& bench, ToolContext& context);  ///< below `bench`
void add_bench_ring(CLI::App& bench, ToolContext& context);     ///< below `bench`
void add_bench_urgent(CLI::App& bench, ToolContext& context);   ///< below `bench`
void add_bench_pingpong(CLI::App& bench, ToolContext& context);  ///< below `bench`
void add_bench_priority(CLI::App& bench, ToolContext& context);  ///< below `bench`
void add_config(CLI::App& app, ToolContext& context);
void add_linalg(CLI::App& app, ToolContext& context);
void add_machine(CLI::App& app, ToolContext& context);
void add_run(CLI::App& app, ToolContext& context);
void add_trace(CLI::App& app, ToolContext& context);

}  // namespace tandem::tools
