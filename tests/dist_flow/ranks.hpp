// tests/dist_flow/ranks.hpp: the ranks of a job as threads of one process, over the loop network.
#pragma once

#include <stdlib.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tandem/api/test_support.hpp"
#include "tandem/api/world.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/transport/loop/loop.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/tandem.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::dist_test {

struct JobSetup {
  std::uint32_t ranks = 2;
  unsigned workers = 1;
  std::string sched = "lws";
  dist::FlowOptions flow = {};
  runtime::CoreOptions core = {};
  comm::LoopOptions network = {};
  std::filesystem::path trace = {};  ///< folder of the job's trace; empty: none, or one that goes, by TEST_TRACE_FOLDER
};

/// How a rank's program ended: nothing, or what it threw.
struct Ending {
  std::string error;
};

/// Where the job's trace goes. With TEST_TRACE_FOLDER, a folder, all jobs are traced, and their traces go as they end.
class TraceFolder {
 public:
  explicit TraceFolder(const JobSetup& setup) : path_(setup.trace) {
    const char* const all = std::getenv("TEST_TRACE_FOLDER");
    if (!path_.empty() || all == nullptr) return;
    std::string name = (std::filesystem::path(all) / "job_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
    passing_ = true;
  }
  ~TraceFolder() {
    if (passing_) std::filesystem::remove_all(path_);
  }
  TraceFolder(const TraceFolder&) = delete;
  TraceFolder& operator=(const TraceFolder&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  bool passing_ = false;
};

inline std::unique_ptr<trace::Session> open_session(const TraceFolder& folder, std::uint32_t rank, std::uint32_t ranks,
                                                    WorldResources& resources) {
  if (folder.path().empty()) return nullptr;
  auto session = trace::Session::open({.folder = folder.path(), .live_folder = folder.path(), .rank = rank, .size = ranks},
                                      *resources.clock, *resources.log);
  if (!session.ok()) throw std::runtime_error(session.error().message);
  return std::move(session).value();
}

/// Runs `program` on each rank, in a thread of its own, and returns how each ended.
inline std::vector<Ending> run_job(const JobSetup& setup, const std::function<void(Runtime&)>& program) {
  comm::LoopOptions network_options = setup.network;
  network_options.ranks = setup.ranks;
  comm::LoopNetwork network(network_options);
  const TraceFolder trace(setup);
  std::vector<Ending> endings(setup.ranks);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < setup.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        auto resources = test::test_resources();
        const auto config = test::test_config({.workers = setup.workers, .sched = setup.sched, .more = {{"bind", "false"}}});
        auto world = make_real_world(config, *resources);
        auto endpoint = comm::Endpoint::open_loop(network, comm::Rank(rank), {}, *resources->log, nullptr);
        auto session = open_session(trace, rank, setup.ranks, *resources);
        Runtime rt(std::move(resources), std::move(world), setup.core, std::move(endpoint), setup.flow, std::move(session));
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
