// benchmarks/tasks/bench_pruned.cpp: what it costs a rank of many to go through a Cholesky factorisation, with loops
// that are pruned to it and without.
//
// `bench_pruned [P [Q [tiles...]]]`: all P x Q ranks are threads of this process, on the loop network, so that one
// machine is enough. One of them registers the tiles, of one element each, and submits the whole flow; that is timed.
// The others do nothing, no kernel runs, and the job is aborted behind the clock: what is measured is the loop, the
// tasks of others, and the submission of the rank's own tasks, sends and receives with what these post at once.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "tandem/api/configure.hpp"
#include "tandem/api/world.hpp"
#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/transport/loop/loop.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/linalg.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/tandem.hpp"

namespace {

using namespace tandem;

struct Sample {
  double ms = 0;
  std::uint64_t positions = 0;
  std::uint64_t own = 0;
  std::uint64_t skipped = 0;
};

/// By the rank in the middle of the grid.
Sample submit(linalg::Distribution::Grid grid, std::size_t tiles, bool prune) {
  const std::uint32_t ranks = grid.p * grid.q, measured = ranks / 2 + grid.q / 2;
  comm::LoopOptions network_options;
  network_options.ranks = ranks;
  comm::LoopNetwork network(network_options);
  Sample sample;
  const auto program = [&](std::uint32_t rank) {
    auto resources = std::make_unique<WorldResources>();
    resources->log = std::make_unique<base::Log>(base::LogLevel::error, [](base::LogLevel, std::string_view) {});
    base::Registry registry;
    register_options(registry);
    base::Config config(registry);
    for (const auto& [name, value] : {std::pair{"workers", "1"}, {"bind", "false"}, {"watchdog", "0"}})
      if (!config.set(name, value).ok()) std::abort();
    auto world = make_real_world(config, *resources);
    auto endpoint = comm::Endpoint::open_loop(network, comm::Rank(rank), {}, *resources->log, nullptr);
    runtime::CoreOptions core = core_options(config);
    core.window = UINT32_MAX;
    try {
      Runtime rt(std::move(resources), std::move(world), core, std::move(endpoint), {.prune = prune});
      if (rank == measured) {
        linalg::TileMatrix<double> matrix({.rows = tiles, .cols = tiles, .tile = 1, .uplo = linalg::Uplo::lower,
                                           .distribution = linalg::Distribution::block_cyclic(grid), .rank = rank});
        linalg::TiledData<double> a(rt, "A", matrix);
        linalg::Info info;
        const auto begin = std::chrono::steady_clock::now();
        linalg::submit_potrf(rt, linalg::Uplo::lower, a, info);
        sample.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
        const dist::FlowStatistics counted = rt.flow_statistics();
        sample.positions = counted.positions;
        sample.own = counted.tasks;
        sample.skipped = counted.skipped;
        rt.flow()->abort("measured");
        try {
          rt.wait();
        } catch (const JobError&) {
          // As it should.
        }
        return;
      }
      rt.wait();
    } catch (const JobError&) {
      // The measurement is over.
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) threads.emplace_back(program, rank);
  for (std::thread& thread : threads) thread.join();
  return sample;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int index, std::uint32_t otherwise) {
    return argc > index ? static_cast<std::uint32_t>(std::strtoul(argv[index], nullptr, 10)) : otherwise;
  };
  const linalg::Distribution::Grid grid{.p = std::max(number(1, 8), 1U), .q = std::max(number(2, 8), 2U)};
  std::vector<std::size_t> orders;
  for (int i = 3; i < argc; ++i) orders.push_back(number(i, 0));
  if (orders.empty()) orders = {50, 100, 200};
  std::printf("{\"ranks\": %u, \"results\": [", grid.p * grid.q);
  const char* separator = "";
  for (const std::size_t tiles : orders) {
    for (const bool prune : {false, true}) {
      std::vector<Sample> samples;
      for (int repetition = 0; repetition < 5; ++repetition) samples.push_back(submit(grid, tiles, prune));
      std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) { return a.ms < b.ms; });
      const Sample& median = samples[samples.size() / 2];
      std::printf(
          "%s\n  {\"name\": \"%s\", \"tiles\": %zu, \"tasks\": %llu, \"own\": %llu, \"skipped\": %llu, \"ms\": %.2f, "
          "\"min_ms\": %.2f, \"max_ms\": %.2f, \"ns_per_task\": %.2f}",
          separator, prune ? "pruned" : "all", tiles, static_cast<unsigned long long>(median.positions),
          static_cast<unsigned long long>(median.own), static_cast<unsigned long long>(median.skipped), median.ms,
          samples.front().ms, samples.back().ms, median.ms * 1e6 / static_cast<double>(median.positions));
      separator = ",";
    }
  }
  std::printf("]}\n");
  return 0;
}
