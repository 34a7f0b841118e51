// tests/comm_processes/crew.hpp: ranks of one process, each with an endpoint and a progress thread.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/comm/bootstrap/thread_job.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/transport/loop/loop.hpp"
#include "team.hpp"

namespace tandem::comm_processes {

/// Ranks of this process with a progress thread each, over "loop", "shm" or "tcp".
struct Crew {
  Crew(std::uint32_t ranks, const std::string& transport) {
    if (transport == "loop") {
      network = std::make_unique<comm::LoopNetwork>(comm::LoopOptions{.ranks = ranks});
      for (std::uint32_t i = 0; i < ranks; ++i)
        at.push_back(comm::Endpoint::open_loop(*network, comm::Rank{i}, {}, log, nullptr));
      return;
    }
    for (comm::Job& job : comm::make_thread_job(ranks)) {
      auto opened = comm::Endpoint::open(std::move(job), options_for(transport), log);
      if (!opened) throw std::runtime_error(opened.error().message);
      at.push_back(std::move(opened).value());
    }
  }
  /// Each leaves on a thread of its own, as each waits for the others' answers.
  ~Crew() {
    std::vector<std::thread> leaving;
    for (auto& endpoint : at) leaving.emplace_back([&endpoint] { endpoint->close(); });
    for (std::thread& thread : leaving) thread.join();
    at.clear();
  }

  base::Log log{base::LogLevel::error};
  std::unique_ptr<comm::LoopNetwork> network;
  std::vector<std::unique_ptr<comm::Endpoint>> at;
};

}  // namespace tandem::comm_processes
