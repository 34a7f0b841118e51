// tests/dist_flow/ranks.hpp: the ranks of a job as threads of one process, over the loop network.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/api/test_support.hpp"
#include "tandem/comm/transport/loop/loop.hpp"
#include "tandem/tandem.hpp"

namespace tandem::dist_test {

struct JobSetup {
  std::uint32_t ranks = 2;
  unsigned workers = 1;
  std::string sched = "lws";
  dist::FlowOptions flow = {};
  runtime::CoreOptions core = {};
  comm::LoopOptions network = {};
};

/// How a rank's program ended: nothing, or what it threw.
struct Ending {
  std::string error;
};

/// Runs `program` on each rank, in a thread of its own, and returns how each ended.
inline std::vector<Ending> run_job(const JobSetup& setup, const std::function<void(Runtime&)>& program) {
  comm::LoopOptions network_options = setup.network;
  network_options.ranks = setup.ranks;
  comm::LoopNetwork network(network_options);
  std::vector<Ending> endings(setup.ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < setup.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        auto ground = test::test_ground();
        const auto config = test::test_config({.workers = setup.workers, .sched = setup.sched, .more = {{"bind", "false"}}});
        auto world = make_real_world(config, *ground);
        auto endpoint = comm::Endpoint::open_loop(network, comm::Rank(rank), {}, *ground->log, nullptr);
        Runtime rt(std::move(ground), std::move(world), setup.core, std::move(endpoint), setup.flow);
        program(rt);
      } catch (const std::exception& error) {
        endings[rank].error = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return endings;
}

}  // namespace tandem::dist_test
