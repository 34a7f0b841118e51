// tests/dist_flow/job_setup.hpp: what a test says of the ranks of a job, and how their programs ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tandem/comm/transport/loop/loop.hpp"
#include "tandem/dist/flow_options.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem {
struct TestWorldOptions;
}

namespace tandem::dist_test {

struct JobSetup {
  std::uint32_t ranks = 2;
  unsigned workers = 1;
  bool caller = true;  ///< the thread of the program is one of them; in `DeterministicJob`
  std::vector<unsigned> workers_of = {};  ///< of each rank, instead; in `run_job`
  unsigned devices = 0;  ///< further workers of each rank, each with a memory apart
  std::size_t device_bytes = 0;  ///< budget of each of these memories; 0: none
  /// Which messages may be read and written there.
  runtime::MessageMemory device_messages = runtime::MessageMemory::host;
  unsigned device_refusals = 0;  ///< so many allocations in each of these memories find none; in `run_job`
  std::function<std::unique_ptr<runtime::Copier>()> device_copier =
      {};  ///< between main memory and a device's; empty: the processor; in `run_job`
  std::string sched = "lws";
  std::size_t main_bytes = 0;  ///< budget of main memory; 0: none
  std::vector<std::size_t> main_bytes_of = {};  ///< of each rank, instead; in `run_job`
  std::function<void(std::uint32_t rank, TestWorldOptions& world)> adjust =
      {};  ///< what differs on this rank; in `DeterministicJob`
  dist::FlowOptions flow = {};
  runtime::CoreOptions core = {};
  comm::LoopOptions network = {};
  /// Memories that emulated kernels of each rank share; in `DeterministicJob`.
  std::vector<runtime::ModelledMemory*> memories = {};
  /// Folder of the job's trace; empty: none, or a temporary one in TEST_TRACE_FOLDER.
  std::filesystem::path trace = {};
};

/// How a rank's program ended: nothing, or what it threw.
struct Ending {
  std::string error;
};

}  // namespace tandem::dist_test
