// tools/bench/run.hpp: what all `tandem bench` commands share: options, places of programs, and the run from suites to
// report.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/bench/suite.hpp"
#include "tools/subcommands.hpp"

namespace tandem::tools {

/// The part of the command line that every benchmark has; 0 or empty is "not given".
struct BenchOptions {
  unsigned rounds = 5;
  unsigned workers = 0;
  double timeout_s = 600;
  std::string budget = "2min";  ///< of time, for all suites; "0": none
  std::string folder;
  bool json = false;
  std::string picture;  ///< PNG to draw; only where there is `add_picture_option`
};

/// Adds these options to a command. `options` outlives its callback.
void add_bench_options(Subcommand command, BenchOptions& options);
/// Adds --picture, for a benchmark that has a script plot_NAME.py.
void add_picture_option(Subcommand command, BenchOptions& options, const std::string& what);

/// Finds the programs of suites: beside this command, where they are installed, or in the folder of `--bin`.
class Programs {
 public:
  Programs(const BenchOptions& options, const base::Config& config);

  /// A program of a peer, if its file is "peer_...", or one of Tandem, which gets the configuration of this command
  /// line.
  BenchProgram find(std::string peer, const std::string& file, std::vector<std::string> arguments,
                    const std::vector<std::pair<std::string, std::string>>& environment = {}) const;

  /// A program started by launchers: `launchers` are command lines up to the name of a program in these folders, and
  /// each starts the next, the last one the program: {{"netns", "run", "8", "--"}, {"mpi_ranks", "8"}}.
  BenchProgram launched(BenchProgram program, const std::vector<std::vector<std::string>>& launchers) const;

 private:
  BenchProgram make(std::string peer, const std::string& name, std::vector<std::string> arguments,
                    std::vector<std::pair<std::string, std::string>> environment) const;
  std::vector<std::filesystem::path> folders_;
  std::vector<std::pair<std::string, std::string>> for_ours_;
};

/// Shows the current step on one line of a terminal (standard error), and nothing elsewhere. An empty text clears the
/// line.
void show_progress(const std::string& text);

/// Reports that the budget allowed only `rounds` rounds.
void print_cut_short(std::size_t rounds, const BenchOptions& options);

/// What a benchmark knows before it runs anything.
struct BenchStart {
  unsigned workers = 0;  ///< asked for, else configured, else all cores
  BenchLimits limits;  ///< for one suite alone
  std::chrono::nanoseconds budget{};
  Json object;           ///< the report, still without results
};
/// Prints the machine for people. Empty, after logging an error, when its topology is unknown or the picture's folder
/// does not exist.
std::optional<BenchStart> begin_bench(const std::string& name, const BenchOptions& options, ToolContext& context);

/// Draws the finished report of benchmark `name`, if a picture is wanted. Logs an error and sets the exit status when
/// it cannot.
void draw_picture(const std::string& name, const Json& report, const BenchOptions& options, ToolContext& context);

using MakeSuites = std::function<std::vector<BenchSuite>(const Programs&, unsigned workers)>;

/// Runs the suites that `make` returns, one after the other, and prints the results: tables, or one JSON object; draws
/// the picture. Sets the context's exit status when a program of ours fails.
void run_bench(const std::string& name, const BenchOptions& options, ToolContext& context, const MakeSuites& make);

}  // namespace tandem::tools
