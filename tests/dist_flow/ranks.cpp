// tests/dist_flow/ranks.cpp: a thread per rank, each with a real world and an endpoint of the loop network.
#include "ranks.hpp"

#include <stdlib.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tandem/api/test_support.hpp"
#include "tandem/api/world.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/trace/session.hpp"

namespace tandem::dist_test {
namespace {

/// Where the job's trace goes.
class TraceFolder {
 public:
  explicit TraceFolder(const JobSetup& setup) : path_(setup.trace) {
    const char* const all = std::getenv("TEST_TRACE_FOLDER");
    if (!path_.empty() || all == nullptr) return;
    std::string name = (std::filesystem::path(all) / "job_XXXXXX").string();
    path_ = ::mkdtemp(name.data());
    temporary_ = true;
  }
  ~TraceFolder() {
    if (temporary_) std::filesystem::remove_all(path_);
  }
  TraceFolder(const TraceFolder&) = delete;
  TraceFolder& operator=(const TraceFolder&) = delete;
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  bool temporary_ = false;
};

/// Plain memory, of which messages may be read in place or not.
class DeviceMemory final : public runtime::MemoryNode {
 public:
  DeviceMemory(runtime::MessageMemory messages, unsigned refusals)
      : messages_(messages), refusals_(static_cast<int>(refusals)) {}
  std::string name() const override { return "device memory"; }
  void* allocate(std::size_t bytes) override {
    if (refusals_.load() > 0 && refusals_.fetch_sub(1) > 0) return nullptr;
    return std::malloc(bytes == 0 ? 1 : bytes);
  }
  void release(void* memory, std::size_t) noexcept override { std::free(memory); }
  runtime::MessageMemory messages() const noexcept override { return messages_; }

 private:
  const runtime::MessageMemory messages_;
  std::atomic<int> refusals_;
};

std::unique_ptr<trace::Session> open_session(const TraceFolder& folder, std::uint32_t rank, std::uint32_t ranks,
                                             WorldResources& resources) {
  if (folder.path().empty()) return nullptr;
  auto session =
      trace::Session::open({.folder = folder.path(), .live_folder = folder.path(), .rank = rank, .size = ranks},
                           *resources.clock, *resources.log);
  if (!session.ok()) throw std::runtime_error(session.error().message);
  return std::move(session).value();
}

}  // namespace

std::vector<Ending> run_job(const JobSetup& setup, const std::function<void(Runtime&)>& program) {
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
        const unsigned workers = rank < setup.workers_of.size() ? setup.workers_of[rank] : setup.workers;
        const std::size_t main_bytes = rank < setup.main_bytes_of.size() ? setup.main_bytes_of[rank] : setup.main_bytes;
        const auto config = test::test_config({.workers = workers,
                                               .sched = setup.sched,
                                               .more = {{"bind", "false"}, {"memory", std::to_string(main_bytes)}}});
        auto world = make_real_world(config, *resources);
        for (unsigned i = 0; i < setup.devices; ++i)
          world.machine.workers.push_back(
              {DeviceKind::user,
               world.add_memory({.kind = runtime::NodeKind::device, .name = "device", .budget = setup.device_bytes},
                                std::make_unique<DeviceMemory>(setup.device_messages, setup.device_refusals),
                                setup.device_copier ? setup.device_copier() : runtime::make_processor_copier())});
        auto endpoint = comm::Endpoint::open_loop(network, comm::Rank(rank), {}, *resources->log, nullptr);
        auto session = open_session(trace, rank, setup.ranks, *resources);
        Runtime rt(std::move(resources), std::move(world), setup.core, std::move(endpoint), setup.flow,
                   std::move(session));
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
