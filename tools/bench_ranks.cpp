// tools/bench_ranks.cpp: `tandem bench ranks`: Cholesky on several ranks of one worker each, beside StarPU-MPI and the
// kernels' bound.
#include <filesystem>
#include <memory>

#include <fmt/core.h>

#include "tools/bench_run.hpp"
#include "tools/counted.hpp"

namespace tandem::tools {
namespace {

using Words = std::vector<std::string>;

struct RanksOptions : BenchOptions {
  std::vector<unsigned> ranks{2, 4};
  std::vector<unsigned> orders{4096, 8320, 8192};
  std::vector<unsigned> tiles{256, 320, 512};
  std::vector<std::string> precisions{"d", "s"};
};

/// StarPU's example is in single precision, so ours beside it is, too.
BenchSuite suite(const Programs& programs, unsigned ranks, unsigned order, unsigned tile,
                 const std::string& precision) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const Words size{"--nb", std::to_string(tile), "--workers", "1", "--precision", precision, "--repetitions", "1"};
  Words ours{"linalg", "potrf", "--tandem.sched=prio", "-n", std::to_string(order), "--json"};
  ours.insert(ours.end(), size.begin(), size.end());
  BenchSuite made{
      fmt::format("Cholesky factorisation, {}, n = {}, tile {}, {} ranks of one worker", precision, order, tile, ranks),
      {programs.launched(programs.ours("tandem", ours), {{"tandem_ranks", self, std::to_string(ranks)}})},
      true,
      {{"n", order}, {"nb", tile}, {"precision", precision}, {"ranks", ranks}, {"workers", 1}}};
  if (precision == "s")
    made.programs.push_back(programs.peer("starpu_mpi", "peer_cholesky_ranks_starpu",
                                          {"--ranks", std::to_string(ranks), "--n", std::to_string(order), "--nb",
                                           std::to_string(tile)}));
  // Two cores share the ranks' work, for any number of ranks.
  made.programs.push_back(programs.peer("kernels", "peer_cholesky_kernels",
                                        {"--n", std::to_string(order), "--nb", std::to_string(tile), "--workers", "2",
                                         "--precision", precision, "--repetitions", "1"}));
  return made;
}

}  // namespace

void add_bench_ranks(Subcommand bench, ToolContext& context) {
  Subcommand command = bench.add_subcommand("ranks", "GFlop/s of a Cholesky factorisation on several ranks");
  const auto options = std::make_shared<RanksOptions>();
  add_bench_options(command, *options);
  command.add_option("--ranks", options->ranks, "Numbers of ranks, separated by commas").list().positive()
      .show_default();
  command.add_option("-n", options->orders, "Orders of the matrices, separated by commas").list().positive()
      .show_default();
  command.add_option("--nb", options->tiles, "Orders of the tiles, one for each matrix").list().positive()
      .show_default();
  command.add_option("--precision", options->precisions, "d, s, separated by commas").list()
      .one_of({"d", "s"}).show_default();
  command.callback([options, &context] {
    if (options->tiles.size() != options->orders.size()) {
      context.log.error("bench ranks: --nb gives {}, -n gives {}: give one tile for each order",
                        counted(options->tiles.size(), "tile"), counted(options->orders.size(), "order"));
      context.exit_status = 2;
      return;
    }
    run_bench("ranks", *options, context, [&](const Programs& programs, unsigned) {
      std::vector<BenchSuite> suites;
      for (const std::string& precision : options->precisions)
        for (std::size_t i = 0; i < options->orders.size(); ++i)
          for (const unsigned ranks : options->ranks)
            suites.push_back(suite(programs, ranks, options->orders[i], options->tiles[i], precision));
      return suites;
    });
  });
}

}  // namespace tandem::tools
