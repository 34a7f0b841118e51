// tools/bench_urgent.cpp: `tandem bench urgent`: a chain of urgent tasks beside bulk for other ranks, with and without
// hints.
#include <filesystem>
#include <memory>

#include <fmt/core.h>

#include "tools/bench_run.hpp"

namespace tandem::tools {
namespace {

struct UrgentOptions : BenchOptions {
  unsigned ranks = 6;
  std::string rate = "200mbit";
  unsigned repetitions = 3;
};

BenchSuite suite(const Programs& programs, const UrgentOptions& options) {
  struct Way {
    const char* name;
    const char* port_priorities;
    const char* announce;
    const char* incoming;
  };
  constexpr Way ways[] = {{"all hints", "true", "true", "true"},
                          {"announced", "true", "true", "false"},
                          {"port priorities", "true", "false", "false"},
                          {"shared", "false", "false", "false"}};
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string ranks = std::to_string(options.ranks);
  BenchSuite made{
      fmt::format("steps of a chain between two ranks of {}, beside bulk for the others, namespaces of {} each",
                  options.ranks, options.rate),
      {},
      false,
      {{"ranks", options.ranks}, {"rate", options.rate}}};
  made.name_as_param = "way";
  for (const Way& way : ways) {
    BenchProgram program = programs.ours("bench_urgent_tandem", {"--repetitions", std::to_string(options.repetitions)});
    program.command.environment.emplace_back("TANDEM_COMM_PORT_PRIORITIES", way.port_priorities);
    program.command.environment.emplace_back("TANDEM_ANNOUNCE", way.announce);
    program.command.environment.emplace_back("TANDEM_INCOMING", way.incoming);
    program.peer = way.name;
    made.programs.push_back(programs.launched(
        program, {{"netns", "run", ranks, "--rate", options.rate, "--"}, {"tandem_ranks", self, ranks}}));
  }
  return made;
}

}  // namespace

void add_bench_urgent(Subcommand bench, ToolContext& context) {
  Subcommand command = bench.add_subcommand(
      "urgent",
      "What urgent tasks gain when bulk makes way, when they are announced, and when workers wait (needs root)");
  const auto options = std::make_shared<UrgentOptions>();
  add_bench_options(command, *options);
  command.add_option("--ranks", options->ranks, "Number of ranks; all but two only receive bulk data").between(3, 250)
      .show_default();
  command
      .add_option("--rate", options->rate,
                  "Rate of each rank's network namespace in both directions: 200mbit, 1gbit, none")
      .show_default();
  command.add_option("--repetitions", options->repetitions, "Chains in each run").positive().show_default();
  command.callback([options, &context] {
    run_bench("urgent", *options, context,
              [&](const Programs& programs, unsigned) { return std::vector{suite(programs, *options)}; });
  });
}

}  // namespace tandem::tools
