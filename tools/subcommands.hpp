// tools/subcommands.hpp: the subcommands of `tandem`, and what each is given.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tools/command_line.hpp"

namespace tandem::tools {

/// What main() has prepared. Outlives the parsing of the command line. A subcommand's callback prints to standard
/// output, logs to standard error, and sets `exit_status` when it fails: 1 for a failure, 2 for a wrong use.
struct ToolContext {
  const base::Config& config;          ///< from tandem.toml, the environment and --tandem.* arguments
  std::vector<std::string> arguments;  ///< the whole command line as given, --tandem.* included
  base::Log& log;
  int exit_status = 0;
  /// Runs another command line of `tandem`, and returns its exit status.
  int (*run)(int argc, char** argv) = nullptr;
};

/// Exit statuses of the command.
inline constexpr int failure = 1, wrong_use = 2;

/// A program that a command line ends with, behind the options of a subcommand (`Subcommand::take_program`).
struct ProgramCall {
  std::vector<std::string> words = {};  ///< the program and its arguments, as given; empty: there is none
  /// Options of Tandem before the program, for its environment. Those behind it are among its words.
  std::vector<std::pair<std::string, std::string>> variables = {};
};
/// Errors: invalid_argument, for an option before the program that the subcommand does not know.
base::Result<ProgramCall> program_call(Subcommand command, const ToolContext& context);

/// All subcommands of this build: with_all.cpp, or with_few.cpp.
void add_all(Subcommand app, ToolContext& context);

// To add a subcommand, write NAME/command.cpp with add_NAME, declare it here, and call it in with_all.cpp. Each adds a
// subcommand to `app` whose callback runs it.
void add_bench(Subcommand app, ToolContext& context);
void add_calibrate(Subcommand app, ToolContext& context);
void add_config(Subcommand app, ToolContext& context);
void add_contention(Subcommand app, ToolContext& context);
void add_doctor(Subcommand app, ToolContext& context);
void add_experiment(Subcommand app, ToolContext& context);
void add_linalg(Subcommand app, ToolContext& context);
void add_machine(Subcommand app, ToolContext& context);
void add_models(Subcommand app, ToolContext& context);
void add_replay(Subcommand app, ToolContext& context);
void add_run(Subcommand app, ToolContext& context);
void add_simulate(Subcommand app, ToolContext& context);
void add_top(Subcommand app, ToolContext& context);
void add_trace(Subcommand app, ToolContext& context);

}  // namespace tandem::tools
