// tools/bench_readers.cpp: `tandem bench readers`: when tasks start that read broadcast data, and those that write it.
#include <filesystem>
#include <memory>

#include <fmt/core.h>

#include "tools/bench_run.hpp"

namespace tandem::tools {
namespace {

struct ReadersOptions : BenchOptions {
  unsigned bytes = 409'600;
  unsigned recipients = 38;
  std::vector<std::string> trees{"automatic", "binary", "binomial", "flat", "off"};
  std::string rate = "200mbit";
  unsigned repetitions = 3;
};

BenchSuite suite(const Programs& programs, const ReadersOptions& options) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string ranks = std::to_string(options.recipients + 1);
  BenchSuite made{
      fmt::format("start of the readers of {} bytes on {} ranks, namespaces of {} each; \"wait\": after forwarding",
                  options.bytes, options.recipients, options.rate),
      {},
      false,
      {{"bytes", options.bytes}, {"recipients", options.recipients}, {"rate", options.rate}}};
  made.name_as_param = "tree";
  for (const std::string& tree : options.trees) {
    for (const bool early : {true, false}) {
      if (!early && tree == "off") continue;  // no rank forwards
      BenchProgram program = programs.ours(
          "bench_readers_tandem",
          {"--bytes", std::to_string(options.bytes), "--repetitions", std::to_string(options.repetitions)});
      program.command.environment.emplace_back("TANDEM_BROADCAST", tree);
      program.command.environment.emplace_back("TANDEM_EARLY_READ", early ? "true" : "false");
      if (!made.programs.empty()) program.peer = early ? tree : tree + " wait";
      made.programs.push_back(programs.launched(
          program, {{"netns", "run", ranks, "--rate", options.rate, "--"}, {"tandem_ranks", self, ranks}}));
    }
  }
  return made;
}

}  // namespace

void add_bench_readers(Subcommand bench, ToolContext& context) {
  Subcommand command = bench.add_subcommand(
      "readers", "When the tasks that read broadcast data start, by rank: before or after forwarding (needs root)");
  const auto options = std::make_shared<ReadersOptions>();
  add_bench_options(command, *options);
  command.add_option("--bytes", options->bytes, "Size of the data").positive().show_default();
  command.add_option("--recipients", options->recipients, "Ranks that receive the data").between(1, 250)
      .show_default();
  command.add_option("--trees", options->trees, "Routing trees, separated by commas").list()
      .one_of({"off", "flat", "chain", "binary", "binomial", "two_tree", "automatic", "ordered"})
      .show_default();
  command
      .add_option("--rate", options->rate,
                  "Rate of each rank's network namespace in both directions: 200mbit, 1gbit, none")
      .show_default();
  command.add_option("--repetitions", options->repetitions, "Broadcasts in each run")
      .positive().show_default();
  add_picture_option(command, *options, "start times by rank");
  command.callback([options, &context] {
    run_bench("readers", *options, context,
              [&](const Programs& programs, unsigned) { return std::vector{suite(programs, *options)}; });
  });
}

}  // namespace tandem::tools
