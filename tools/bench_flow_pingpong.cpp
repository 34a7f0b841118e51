// tools/bench_flow_pingpong.cpp: `tandem bench flow_pingpong`, `arrival` and `polling`: what the task flow adds to a
// message, how soon progress is made when a message comes, and what idle workers cost messages.
#include <algorithm>
#include <filesystem>
#include <memory>

#include <fmt/core.h>

#include "tools/bench_run.hpp"

namespace tandem::tools {
namespace {

using Words = std::vector<std::string>;

struct FlowPingpongOptions : BenchOptions {
  std::vector<unsigned> ranks{2, 4};
  unsigned bytes = 8;
  unsigned trips = 1000;
};

struct ArrivalOptions : BenchOptions {
  std::vector<unsigned> busy{1, 2};
  unsigned messages = 300;
};

struct PollingOptions : BenchOptions {
  unsigned idle = 1;
  unsigned trips = 2000;
};

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

BenchSuite flow_pingpong_suite(const Programs& programs, const FlowPingpongOptions& options, unsigned ranks,
                               bool bound) {
  const std::string count = std::to_string(ranks);
  const auto words = [&](unsigned trips) {
    Words made{"--bytes", std::to_string(options.bytes), "--trips", std::to_string(trips), "--repetitions", "3"};
    if (bound) made.push_back("--bound");
    return made;
  };
  const unsigned peer_trips = std::max(1U, options.trips / 20);  // each may take milliseconds
  return {fmt::format("half a round trip between tasks of two ranks, {} ranks, {}", ranks,
                      bound ? "each on a core" : "as the system places them"),
          {programs.launched(programs.ours("bench_flow_pingpong_tandem", words(options.trips)),
                             {{"tandem_ranks", own_path(), count}}),
           programs.launched(programs.peer("starpu_mpi", "peer_flow_pingpong_starpu", words(peer_trips)),
                             {{"mpi_ranks", count}})},
          false,
          {{"ranks", ranks}, {"bytes", options.bytes}, {"bound", bound}}};
}

BenchSuite arrival_suite(const Programs& programs, const ArrivalOptions& options, unsigned workers) {
  const Words words{
      "--workers", std::to_string(workers), "--messages", std::to_string(options.messages), "--repetitions", "1"};
  return {fmt::format("a message to a rank of {} workers that rest or compute", workers),
          {programs.launched(programs.ours("bench_arrival_tandem", words), {{"tandem_ranks", own_path(), "2"}})},
          false,
          {{"workers", workers}}};
}

BenchSuite polling_suite(const Programs& programs, const PollingOptions& options) {
  const Words words{
      "--workers", std::to_string(options.idle), "--trips", std::to_string(options.trips), "--repetitions", "1"};
  return {fmt::format("half a round trip of 4 bytes beside {} idle workers on each of two ranks", options.idle),
          {programs.launched(programs.ours("bench_polling_tandem", words), {{"tandem_ranks", own_path(), "2"}})},
          false,
          {{"idle_workers", options.idle}}};
}

}  // namespace

void add_bench_polling(Subcommand bench, ToolContext& context) {
  Subcommand command =
      bench.add_subcommand("polling", "Latency of small messages beside idle workers that poll, sleep or are paused");
  const auto options = std::make_shared<PollingOptions>();
  add_bench_options(command, *options);
  command.add_option("--idle", options->idle, "Idle workers of each rank").positive().show_default();
  command.add_option("--trips", options->trips, "Round trips of a sample").positive().show_default();
  command.callback([options, &context] {
    run_bench("polling", *options, context,
              [&](const Programs& programs, unsigned) { return std::vector{polling_suite(programs, *options)}; });
  });
}

void add_bench_flow_pingpong(Subcommand bench, ToolContext& context) {
  Subcommand command =
      bench.add_subcommand("flow_pingpong", "What the task flow adds to a message between tasks of two ranks");
  const auto options = std::make_shared<FlowPingpongOptions>();
  add_bench_options(command, *options);
  command.add_option("--ranks", options->ranks,
                     "Even numbers of ranks, separated by commas; all pairs exchange messages at once").list()
      .positive().show_default();
  command.add_option("--bytes", options->bytes, "Bytes of the message").positive().show_default();
  command.add_option("--trips", options->trips, "Round trips per sample, all submitted before the first one runs")
      .positive()
      .show_default();
  command.callback([options, &context] {
    run_bench("flow_pingpong", *options, context, [&](const Programs& programs, unsigned) {
      std::vector<BenchSuite> suites;
      for (const unsigned ranks : options->ranks)
        for (const bool bound : {false, true}) suites.push_back(flow_pingpong_suite(programs, *options, ranks, bound));
      return suites;
    });
  });
}

void add_bench_arrival(Subcommand bench, ToolContext& context) {
  Subcommand command =
      bench.add_subcommand("arrival", "Delay of a message to a rank whose workers are idle or compute");
  const auto options = std::make_shared<ArrivalOptions>();
  add_bench_options(command, *options);
  command.add_option("--busy", options->busy, "Numbers of workers of the receiving rank, separated by commas").list()
      .positive().show_default();
  command.add_option("--messages", options->messages, "Messages of each kind in a round").positive().show_default();
  command.callback([options, &context] {
    run_bench("arrival", *options, context, [&](const Programs& programs, unsigned) {
      std::vector<BenchSuite> suites;
      for (const unsigned workers : options->busy) suites.push_back(arrival_suite(programs, *options, workers));
      return suites;
    });
  });
}

}  // namespace tandem::tools
