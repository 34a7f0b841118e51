// tools/bench_command.cpp: `tandem bench NAME`: Tandem's benchmark program and its peers', in turns, compared.
#include <algorithm>
#include <memory>

#include <fmt/core.h>

#include "tools/bench_run.hpp"
#include "tools/counted.hpp"

namespace tandem::tools {
namespace {

constexpr int wrong_use = 2;

/// The command lines of these benchmarks.
struct BenchArguments : BenchOptions {
  std::string flow = "all";                  ///< tasks
  unsigned trials = 100;                     ///< wake
  std::vector<unsigned> orders{8192, 4096};  ///< cholesky
  std::vector<unsigned> tiles;
  std::string precision = "d";
  unsigned kib = 1024, blocks = 32, steps = 20;  ///< device
  unsigned order = 32'768, tile = 2'048;         ///< cuda; hybrid: tile
};

BenchSuite tasks_suite(const Programs& programs, const BenchArguments& arguments, unsigned workers) {
  const std::vector<std::string> words{"--workers", std::to_string(workers), "--repetitions", "1",
                                       "--flow",    arguments.flow};
  BenchSuite suite{
      "cost of a task, empty kernels", {programs.ours("bench_tasks_tandem", words)}, false, {{"workers", workers}}};
  for (const char* peer : {"starpu", "openmp", "libomp", "tbb", "taskflow"})
    suite.programs.push_back(programs.peer(peer, fmt::format("peer_tasks_{}", peer), words));
  return suite;
}

BenchSuite wake_suite(const Programs& programs, const BenchArguments& arguments, unsigned workers) {
  const std::vector<std::string> words{"--workers", std::to_string(workers), "--repetitions", "1",
                                       "--trials",  std::to_string(arguments.trials)};
  BenchSuite suite{"idle workers, and the first task after idleness",
                   {programs.ours("bench_wake_tandem", words)},
                   false,
                   {{"workers", workers}, {"trials", arguments.trials}}};
  for (const char* peer : {"starpu", "openmp", "libomp", "tbb"})
    suite.programs.push_back(programs.peer(peer, fmt::format("peer_wake_{}", peer), words));
  return suite;
}

struct CholeskySize {
  unsigned order, tile;
};

BenchSuite cholesky_suite(const Programs& programs, const BenchArguments& arguments, unsigned workers,
                          CholeskySize size) {
  const std::vector<std::string> common{
      "--nb",        std::to_string(size.tile), "--workers",     std::to_string(workers),
      "--precision", arguments.precision,       "--repetitions", "1"};
  std::vector<std::string> words{"linalg", "potrf", "-n", std::to_string(size.order), "--json"};
  std::vector<std::string> peer_words{"--n", std::to_string(size.order)};
  words.insert(words.end(), common.begin(), common.end());
  peer_words.insert(peer_words.end(), common.begin(), common.end());

  BenchSuite suite{
      fmt::format("Cholesky factorisation, {}, n = {}, tile {}", arguments.precision, size.order, size.tile),
      {programs.ours("tandem", words)},
      true,
      {{"n", size.order}, {"nb", size.tile}, {"precision", arguments.precision}, {"workers", workers}}};
  suite.programs.push_back(programs.peer("openmp", "peer_cholesky_openmp", peer_words));
  suite.programs.push_back(programs.peer("libomp", "peer_cholesky_libomp", peer_words));
  suite.programs.push_back(programs.peer("starpu", "peer_cholesky_starpu", peer_words, {{"STARPU_SCHED", "lws"}}));
  suite.programs.push_back(
      programs.peer("starpu_prio", "peer_cholesky_starpu", peer_words, {{"STARPU_SCHED", "prio"}}));
  suite.programs.push_back(programs.peer("blas", "peer_cholesky_blas", peer_words));
  suite.programs.push_back(programs.peer("kernels", "peer_cholesky_kernels", peer_words));
  return suite;
}

/// Default sizes of tiles: a sixteenth of each order.
std::vector<unsigned> tiles_for(const BenchArguments& arguments) {
  if (!arguments.tiles.empty()) return arguments.tiles;
  std::vector<unsigned> tiles;
  for (const unsigned order : arguments.orders) tiles.push_back(std::max(1U, order / 16));
  return tiles;
}

void add_tasks(Subcommand bench, ToolContext& context) {
  Subcommand command =
      bench.add_subcommand("tasks", "Cost of a task: submission, dependencies, execution of an empty kernel");
  const auto arguments = std::make_shared<BenchArguments>();
  add_bench_options(command, *arguments);
  command.add_option("--flow", arguments->flow, "Only this task flow")
      .one_of({"all", "independent_bare", "independent", "chain", "wavefront", "cholesky", "cholesky_replay",
                             "bytes_per_task"})
      .show_default();
  command.callback([arguments, &context] {
    run_bench("tasks", *arguments, context, [&](const Programs& programs, unsigned workers) {
      return std::vector{tasks_suite(programs, *arguments, workers)};
    });
  });
}

void add_wake(Subcommand bench, ToolContext& context) {
  Subcommand command =
      bench.add_subcommand("wake", "Processor time of idle workers, and how soon they start a first task");
  const auto arguments = std::make_shared<BenchArguments>();
  add_bench_options(command, *arguments);
  command.add_option("--trials", arguments->trials, "First tasks per round").positive().show_default();
  command.callback([arguments, &context] {
    run_bench("wake", *arguments, context, [&](const Programs& programs, unsigned workers) {
      return std::vector{wake_suite(programs, *arguments, workers)};
    });
  });
}

BenchSuite trace_suite(const Programs& programs) {
  const std::vector<std::string> words{"--repetitions", "1"};
  BenchSuite suite{"cost of an event with two arguments, for the thread that records it",
                   {programs.ours("bench_trace_tandem", words)}, false, Json::object()};
  for (const char* peer : {"fxt", "lttng", "bare"})
    suite.programs.push_back(programs.peer(peer, fmt::format("peer_trace_{}", peer), words));
  return suite;
}

void add_events(Subcommand bench, ToolContext& context) {
  Subcommand command = bench.add_subcommand("trace", "Cost of recording a trace event");
  const auto arguments = std::make_shared<BenchArguments>();
  add_bench_options(command, *arguments);
  command.callback([arguments, &context] {
    run_bench("trace", *arguments, context, [&](const Programs& programs, unsigned) {
      return std::vector{trace_suite(programs)};
    });
  });
}

void add_cholesky(Subcommand bench, ToolContext& context) {
  Subcommand command =
      bench.add_subcommand("cholesky", "GFlop/s of the Cholesky factorisation, and the upper bound by its kernels");
  const auto arguments = std::make_shared<BenchArguments>();
  add_bench_options(command, *arguments);
  command.add_option("-n", arguments->orders, "Orders of the matrices, separated by commas")
      .list().positive().show_default();
  command.add_option("--nb", arguments->tiles, "Orders of the tiles, one for each matrix (default: a sixteenth of its order)")
      .list().positive();
  command.add_option("--precision", arguments->precision, "d or s").one_of({"d", "s"}).show_default();
  command.callback([arguments, &context] {
    const std::vector<unsigned> tiles = tiles_for(*arguments);
    if (tiles.size() != arguments->orders.size()) {
      context.log.error("bench cholesky: --nb gives {}, -n gives {}: give one tile for each order",
                        counted(tiles.size(), "tile"), counted(arguments->orders.size(), "order"));
      context.exit_status = wrong_use;
      return;
    }
    run_bench("cholesky", *arguments, context, [&](const Programs& programs, unsigned workers) {
      std::vector<BenchSuite> suites;
      for (std::size_t i = 0; i < tiles.size(); ++i)
        suites.push_back(cholesky_suite(programs, *arguments, workers, {arguments->orders[i], tiles[i]}));
      return suites;
    });
  });
}

BenchSuite device_suite(const Programs& programs, const BenchArguments& arguments) {
  const std::vector<std::string> words{
      "--kib",   std::to_string(arguments.kib),   "--blocks",      std::to_string(arguments.blocks),
      "--steps", std::to_string(arguments.steps), "--repetitions", "1"};
  BenchSuite suite{
      fmt::format("data to an OpenCL device and back, {} blocks of {} KiB", arguments.blocks, arguments.kib),
      {programs.ours("bench_device_tandem", words)},
      false,
      {{"kib", arguments.kib}, {"blocks", arguments.blocks}, {"steps", arguments.steps}}};
  suite.programs.push_back(programs.peer("bare", "peer_device_bare", words));
  return suite;
}

void add_device(Subcommand bench, ToolContext& context) {
  Subcommand command =
      bench.add_subcommand("device", "Copies and kernels of an OpenCL device: alone, and beside each other");
  const auto arguments = std::make_shared<BenchArguments>();
  add_bench_options(command, *arguments);
  command.add_option("--kib", arguments->kib, "Size of a block").positive().show_default();
  command.add_option("--blocks", arguments->blocks, "Blocks that go to and fro").positive().show_default();
  command.add_option("--steps", arguments->steps, "Operations of the kernel for each number, two flops each")
      .positive()
      .show_default();
  command.callback([arguments, &context] {
    run_bench("device", *arguments, context, [&](const Programs& programs, unsigned) {
      return std::vector{device_suite(programs, *arguments)};
    });
  });
}

BenchSuite cuda_suite(const Programs& programs, const BenchArguments& arguments) {
  const std::vector<std::string> words{"--n", std::to_string(arguments.order), "--tile",
                                       std::to_string(arguments.tile)};
  BenchSuite suite{fmt::format("linear algebra on a CUDA device, d, n = {}, tile {}", arguments.order, arguments.tile),
                   {programs.ours("bench_cuda", words)},
                   true,
                   {{"n", arguments.order}, {"nb", arguments.tile}}};
  suite.programs.push_back(programs.peer("cudastf", "peer_cuda_cudastf", words));
  suite.warms_up = false;
  return suite;
}

void add_cuda(Subcommand bench, ToolContext& context) {
  Subcommand command = bench.add_subcommand("cuda",
                                            "Products and Cholesky factorisations on a CUDA device: in tiles, beside "
                                            "one call of its library, and out of core");
  const auto arguments = std::make_shared<BenchArguments>();
  add_bench_options(command, *arguments);
  command.add_option("-n", arguments->order, "Order of the matrices").positive().show_default();
  command.add_option("--nb", arguments->tile, "Order of a tile").positive().show_default();
  command.callback([arguments, &context] {
    run_bench("cuda", *arguments, context, [&](const Programs& programs, unsigned) {
      return std::vector{cuda_suite(programs, *arguments)};
    });
  });
}

BenchSuite hybrid_suite(const Programs& programs, unsigned order, unsigned tile) {
  std::vector<std::string> words{"--n", std::to_string(order)};
  if (tile != 0) words.insert(words.end(), {"--tile", std::to_string(tile)});
  BenchSuite suite{fmt::format("linear algebra on cores, on a CUDA device, and on both, d, n = {}", order),
                   {programs.ours("bench_hybrid", words)},
                   true,
                   {{"n", order}}};
  suite.warms_up = false;
  return suite;
}

void add_hybrid(Subcommand bench, ToolContext& context) {
  Subcommand command = bench.add_subcommand(
      "hybrid",
      "Products and factorisations on cores, on a CUDA device, and on both: is the whole as fast as the better part?");
  const auto arguments = std::make_shared<BenchArguments>();
  arguments->orders = {2048, 4096, 8192, 16'384};
  add_bench_options(command, *arguments);
  command.add_option("-n", arguments->orders, "Orders of the matrices, separated by commas")
      .list()
      .positive()
      .show_default();
  command.add_option("--nb", arguments->tile, "Order of a tile (default: a sixteenth of the matrix, from 256 to 2048)")
      .positive();
  arguments->tile = 0;
  command.callback([arguments, &context] {
    run_bench("hybrid", *arguments, context, [&](const Programs& programs, unsigned) {
      std::vector<BenchSuite> suites;
      for (const unsigned order : arguments->orders) suites.push_back(hybrid_suite(programs, order, arguments->tile));
      return suites;
    });
  });
}

}  // namespace

void add_bench(Subcommand app, ToolContext& context) {
  Subcommand bench = app.add_subcommand("bench", "Measure Tandem and comparable programs in turns");
  bench.require_subcommand();
  add_tasks(bench, context);
  add_wake(bench, context);
  add_events(bench, context);
  add_bench_flushes(bench, context);
  add_cholesky(bench, context);
  add_device(bench, context);
  add_cuda(bench, context);
  add_hybrid(bench, context);
  add_bench_pingpong(bench, context);
  add_bench_flow_pingpong(bench, context);
  add_bench_arrival(bench, context);
  add_bench_polling(bench, context);
  add_bench_burst(bench, context);
  add_bench_urgent(bench, context);
  add_bench_priority(bench, context);
  add_bench_overlap(bench, context);
  add_bench_ranks(bench, context);
  add_bench_readers(bench, context);
  add_bench_broadcasts(bench, context);
  add_bench_bcast(bench, context);
  add_bench_clock(bench, context);
  add_bench_ring(bench, context);
}

}  // namespace tandem::tools
