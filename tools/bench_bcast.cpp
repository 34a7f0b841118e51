// tools/bench_bcast.cpp: `tandem bench bcast`: one message to many ranks, along Tandem's trees and by peers.
#include <filesystem>
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tools/bench_run.hpp"

namespace tandem::tools {
namespace {

struct BcastArguments : BenchOptions {
  unsigned bytes = 439'296;
  std::vector<unsigned> recipients{7};
  std::vector<std::string> trees{"automatic", "flat", "binomial", "binary", "chain", "two_tree"};
  std::string rate;            ///< empty: one host without namespaces
  unsigned repetitions = 3;    ///< broadcasts of each run
  unsigned segment_bytes = 0;  ///< of ours; 0: chosen
  bool without_starpu = false;
};

/// A usual segment size of Open MPI's pipeline.
constexpr const char* mpi_segment_bytes = "16384";

BenchSuite bcast_suite(const Programs& programs, const BcastArguments& arguments, unsigned recipients) {
  const std::string ranks = std::to_string(recipients + 1);
  const bool namespaces = !arguments.rate.empty();
  const std::string pause_ms = namespaces ? "30" : "2";
  const std::string bytes = std::to_string(arguments.bytes), repetitions = std::to_string(arguments.repetitions);
  const std::vector<std::string> common{"--bytes", bytes, "--repetitions", repetitions, "--pause-ms", pause_ms};
  std::vector<std::string> own = common, bare = common;
  own.insert(own.end(), {"--trees", fmt::format("{}", fmt::join(arguments.trees, ","))});
  if (arguments.segment_bytes > 0) own.insert(own.end(), {"--segment", std::to_string(arguments.segment_bytes)});
  bare.insert(bare.end(), {"--ranks", ranks});

  const auto start = [&](BenchProgram program, std::vector<std::vector<std::string>> launchers) {
    if (namespaces) launchers.insert(launchers.begin(), {"netns", "run", ranks, "--rate", arguments.rate, "--"});
    return programs.launched(std::move(program), launchers);
  };
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string where = !namespaces               ? "one host"
                            : arguments.rate == "none" ? "namespaces without a limit"
                                                       : fmt::format("namespaces of {} each", arguments.rate);
  BenchSuite suite{fmt::format("broadcast of {} bytes to {} recipients, {}", arguments.bytes, recipients, where),
                   {start(programs.ours("bench_bcast_tandem", own), {{"tandem_ranks", self, ranks}})},
                   false,
                   {{"bytes", arguments.bytes},
                    {"recipients", recipients},
                    {"namespaces", namespaces},
                    {"rate", namespaces ? arguments.rate : "none"}}};
  suite.name_as_param = "tree";
  suite.programs.push_back(start(programs.peer("bare", "peer_bcast_bare", bare), {}));
  suite.programs.push_back(start(programs.peer("openmpi", "peer_bcast_mpi", common), {{"mpi_ranks", ranks}}));
  suite.programs.push_back(start(programs.peer("openmpi_pipeline", "peer_bcast_mpi", common),
                                 {{"mpi_ranks", ranks, "--pipeline", mpi_segment_bytes}}));
  if (!arguments.without_starpu)
    suite.programs.push_back(start(programs.peer("starpu", "peer_bcast_starpu", common), {{"mpi_ranks", ranks}}));
  return suite;
}

}  // namespace

void add_bench_bcast(Subcommand bench, ToolContext& context) {
  Subcommand command =
      bench.add_subcommand("bcast", "Duration of a broadcast by routing tree, on one host or over slow links");
  const auto arguments = std::make_shared<BcastArguments>();
  add_bench_options(command, *arguments);
  command.add_option("--bytes", arguments->bytes, "Size of the message").positive().show_default();
  command.add_option("--recipients", arguments->recipients, "Numbers of recipients, separated by commas")
      .list().between(1, 250).show_default();
  command.add_option("--trees", arguments->trees, "Tandem's routing trees, separated by commas").list()
      .one_of({"automatic", "flat", "chain", "binary", "kary", "binomial", "knomial", "two_tree", "delegate",
                             "two_groups"})
      .show_default();
  command.add_option("--rate", arguments->rate,
                      "Network namespaces with this rate in both directions: 200mbit, 1gbit, none (needs root)");
  command.add_option("--repetitions", arguments->repetitions, "Broadcasts in each run")
      .positive().show_default();
  command.add_option("--segment", arguments->segment_bytes, "Bytes of Tandem's segments (default: Tandem chooses)")
      .positive();
  command.add_flag("--without-starpu", arguments->without_starpu,
                   "Leave out StarPU-MPI, which takes long with many ranks");
  add_picture_option(command, *arguments, "times by number of recipients, and by rank");
  command.callback([arguments, &context] {
    run_bench("bcast", *arguments, context, [&](const Programs& programs, unsigned) {
      std::vector<BenchSuite> suites;
      for (const unsigned recipients : arguments->recipients)
        suites.push_back(bcast_suite(programs, *arguments, recipients));
      return suites;
    });
  });
}

}  // namespace tandem::tools
