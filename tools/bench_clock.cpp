// tools/bench_clock.cpp: `tandem bench clock`: how well ranks with wrong clocks know one time, and leave a barrier at
// once.
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tools/bench_run.hpp"

namespace tandem::tools {
namespace {

struct ClockArguments : BenchOptions {
  unsigned ranks = 2;
  unsigned interval_ms = 1000;
  unsigned barriers = 100;
  std::vector<unsigned> at_s{2};
  std::vector<std::string> drifts{"constant", "linear", "sinusoidal"};
  std::string transport = "shm";
};

BenchSuite clock_suite(const Programs& programs, const ClockArguments& arguments, const std::string& drift) {
  return {fmt::format("clocks of {} ranks over {}, {} drift injected", arguments.ranks, arguments.transport, drift),
          {programs.ours("bench_clock_tandem",
                         {"--ranks", std::to_string(arguments.ranks), "--drift", drift, "--transport",
                          arguments.transport, "--at", fmt::format("{}", fmt::join(arguments.at_s, ",")), "--interval",
                          std::to_string(arguments.interval_ms), "--barriers", std::to_string(arguments.barriers)})},
          false,
          {{"drift", drift}, {"ranks", arguments.ranks}, {"transport", arguments.transport},
           {"interval_ms", arguments.interval_ms}}};
}

}  // namespace

void add_bench_clock(Subcommand bench, ToolContext& context) {
  Subcommand command =
      bench.add_subcommand("clock", "Error of the global clock under injected drifts, its cost, and barriers");
  const auto arguments = std::make_shared<ClockArguments>();
  add_bench_options(command, *arguments);
  command.add_option("--at", arguments->at_s, "Seconds after the start at which the error is measured, separated by commas")
      .list().between(1, 86'400).show_default();
  command.add_option("--ranks", arguments->ranks, "Number of ranks").between(2, 64).show_default();
  command.add_option("--drift", arguments->drifts, "constant, linear, sinusoidal, separated by commas")
      .list().one_of({"constant", "linear", "sinusoidal"}).show_default();
  command.add_option("--transport", arguments->transport, "shm or tcp")
      .one_of({"shm", "tcp"}).show_default();
  command.add_option("--interval", arguments->interval_ms, "Milliseconds between two clock measurements")
      .positive().show_default();
  command.add_option("--barriers", arguments->barriers, "Number of barriers whose exit times are compared")
      .between(1, 8192).show_default();
  command.callback([arguments, &context] {
    run_bench("clock", *arguments, context, [&](const Programs& programs, unsigned) {
      std::vector<BenchSuite> suites;
      for (const std::string& drift : arguments->drifts) suites.push_back(clock_suite(programs, *arguments, drift));
      return suites;
    });
  });
}

}  // namespace tandem::tools
