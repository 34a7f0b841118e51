// tools/bench_broadcasts.cpp: `tandem bench broadcasts`: factorisations on many ranks behind slow links, with and
// without the broadcasts that the flow detects (thesis 4.4.2, 4.4.3).
#include <filesystem>
#include <memory>

#include <fmt/core.h>

#include "tools/bench_run.hpp"

namespace tandem::tools {
namespace {

using Words = std::vector<std::string>;

struct BroadcastsOptions : BenchOptions {
  std::vector<unsigned> ranks{16, 36};
  Words operations{"geqrf", "potrf", "gemm"};
  Words trees{"off"};
  std::string rate = "200mbit";
  unsigned tile = 320;
  double gflops = 40;
};

/// QR is the thesis's: a matrix three times wider than high, with all tiles of a column on one rank.
Words operation_words(const std::string& operation, unsigned tile, unsigned ranks) {
  const auto tiles = [&](unsigned count) { return std::to_string(count * tile); };
  if (operation == "geqrf")
    return {operation, "-m", tiles(8), "-n", tiles(24), "--p", "1", "--q", std::to_string(ranks)};
  return {operation, "-n", tiles(operation == "gemm" ? 12 : 24)};
}

BenchSuite suite(const Programs& programs, const BroadcastsOptions& options, const std::string& operation,
                 unsigned ranks) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string(), count = std::to_string(ranks);
  const auto with = [&](const std::string& tree) {
    Words words{"linalg"};
    for (const std::string& word : operation_words(operation, options.tile, ranks)) words.push_back(word);
    const Words more{"--nb", std::to_string(options.tile), "--precision", "s", "--workers", "1", "--repetitions", "1", "--json",
                     "--tandem.sched=prio", "--tandem.broadcast=" + tree, "--emulate-kernels",
                     fmt::format("{}", options.gflops)};
    words.insert(words.end(), more.begin(), more.end());
    return programs.launched(programs.ours("tandem", words),
                             {{"netns", "run", count, "--rate", options.rate, "--"}, {"tandem_ranks", self, count}});
  };
  BenchSuite made{
      fmt::format("{} on {} ranks, namespaces of {} each, kernels emulated at {} GFlop/s", operation, ranks,
                  options.rate, options.gflops),
      {with("automatic")},
      true,
      {{"ranks", ranks}, {"rate", options.rate}, {"nb", options.tile}, {"emulated_gflops", options.gflops}}};
  for (const std::string& tree : options.trees) {
    made.programs.push_back(with(tree));
    made.programs.back().peer = tree;
  }
  return made;
}

}  // namespace

void add_bench_broadcasts(Subcommand bench, ToolContext& context) {
  Subcommand command = bench.add_subcommand(
      "broadcasts", "Gain by detected broadcasts: QR, Cholesky and gemm over slow links (needs root)");
  const auto options = std::make_shared<BroadcastsOptions>();
  add_bench_options(command, *options);
  command.add_option("--ranks", options->ranks, "Numbers of ranks of one worker each, separated by commas")
      .list().between(2, 250).show_default();
  command.add_option("--operations", options->operations, "geqrf, potrf, gemm, separated by commas")
      .list().one_of({"geqrf", "potrf", "gemm"}).show_default();
  command.add_option("--trees", options->trees, "Routing trees that are compared with `automatic`, separated by commas")
      .list()
      .one_of({"off", "flat", "chain", "binary", "binomial", "two_tree"})
      .show_default();
  command
      .add_option("--rate", options->rate,
                  "Rate of each rank's network namespace in both directions: 200mbit, 1gbit, none")
      .show_default();
  command.add_option("--nb", options->tile, "Order of a tile").positive().show_default();
  command.add_option("--emulate-kernels", options->gflops,
                      "GFlop/s at which kernels would run: they sleep instead, so that few cores stand for many")
      .between(1e-3, 1e6).show_default();
  command.callback([options, &context] {
    run_bench("broadcasts", *options, context, [&](const Programs& programs, unsigned) {
      std::vector<BenchSuite> suites;
      for (const std::string& operation : options->operations)
        for (const unsigned ranks : options->ranks) suites.push_back(suite(programs, *options, operation, ranks));
      return suites;
    });
  });
}

}  // namespace tandem::tools
