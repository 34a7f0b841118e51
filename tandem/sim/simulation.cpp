// tandem/sim/simulation.cpp: the place of each rank: its workers on the common loop, its network, its kernels.
#include "tandem/sim/simulation.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <exception>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/base/log.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/transport/loop/loop.hpp"
#include "tandem/runtime/virtual_place.hpp"
#include "tandem/sim/job.hpp"
#include "tandem/sim_rank/node_memories.hpp"
#include "tandem/sim_rank/rank_machine.hpp"

namespace tandem::sim {
namespace {

/// Data of simulated ranks is address space that nobody touches: as mappings of their own, large blocks cost nothing.
/// In the heap they are thousands of free chunks of one list, which is sorted again and again: a third of the time of
/// 100 ranks with 10,000 tiles.
void keep_large_blocks_apart() {
  constexpr int kLargeBytes = 256 << 10, kMostMappings = 1'000'000;
  ::mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  ::mallopt(M_MMAP_MAX, kMostMappings);  // the kernel's own limit then decides, and the heap holds what is beyond
}

}  // namespace

struct Simulation::Parts : comm::LoopLabour {
  explicit Parts(Options given)
      : options(std::move(given)),
        job(options.seed),
        memories(options.platform, job.loop(), 0, options.platform.ranks),
        network(network_here(), &job.loop()) {}

  comm::LoopOptions network_here() {
    comm::LoopOptions network_options = network_of(options.platform, options.execution);
    network_options.labour = this;
    if (!memories.empty()) network_options.rates = &memories;
    return network_options;
  }
  void note_packet(comm::Rank rank, std::size_t bytes, bool is_near) override;
  /// What has no duration takes no time.
  KernelTime time_of(const runtime::EmulatedTask& task, std::uint32_t node) {
    if (task.is_own) return time_of_own(task, options.platform, options.execution);
    kernels.emplace(task.codelet);
    if (auto known = options.kernels(task, node)) return *std::move(known);
    without_model.emplace(task.codelet);
    return {.computes = options.execution == Execution::all};
  }

  const Options options;
  Job job;
  NodeMemories memories;
  comm::LoopNetwork network;
  std::set<std::string, std::less<>> kernels, without_model;
  std::uint64_t kernels_begun = 0;
  /// By the number of a kind of task, for each kind of node.
  std::vector<std::unordered_map<std::uint64_t, KernelTime>> times{options.platform.nodes.size()};
  std::vector<std::unique_ptr<Place>> places;
};

class Simulation::Place final : public runtime::VirtualPlace {
 public:
  Place(Parts& parts, std::uint32_t rank)
      : parts_(parts),
        rank_(rank),
        node_(parts.options.platform.kind_of(rank)),
        machine_(parts.options.platform, rank),
        host_(host_of(parts.options.platform, rank, [this](std::int64_t ns) { parts_.job.sleep(rank_, ns); })),
        drawn_(parts.options.platform, rank, parts.options.seed) {}

  std::uint32_t rank() const noexcept override { return rank_; }
  std::uint32_t size() const noexcept override { return parts_.options.platform.ranks; }
  std::string job() const override { return fmt::format("simulated, seed {}", parts_.options.seed); }
  base::EventLoop& loop() noexcept override { return parts_.job.loop(); }
  std::unique_ptr<base::Driver> make_driver() override { return parts_.job.make_driver(rank_); }
  void furnish(runtime::World& world, const runtime::Furnishing& wanted) override {
    machine_.furnish(world, wanted, loop(), carried_bytes());
  }
  std::unique_ptr<comm::Endpoint> open_endpoint(const comm::EndpointOptions& options, base::Log& log) override {
    if (size() == 1) return nullptr;
    return comm::Endpoint::open_loop(parts_.network, comm::Rank(rank_), options, log, &parts_.job.loop());
  }
  runtime::Emulation emulation() override {
    return [this](const runtime::EmulatedTask& task) -> std::optional<runtime::EmulatedWork> {
      if (parts_.kernels_begun++ % 1024 == 0 && parts_.options.progress) parts_.options.progress(loop().now_ns());
      const std::uint64_t kind = number_of_kind(task);
      auto& times = parts_.times[node_];
      auto known = times.find(kind);
      if (known == times.end()) known = times.emplace(kind, parts_.time_of(task, node_)).first;
      return drawn_.draw(known->second, kind, machine_.slowness(task.worker));
    };
  }
  std::unique_ptr<runtime::Estimates> estimates() override {
    return std::make_unique<KnownDurations>(
        [this](const runtime::EmulatedTask& task) { return parts_.options.kernels(task, node_); });
  }
  runtime::ModelledHost& host() override { return host_; }
  runtime::ModelledMemory* memory() noexcept override { return parts_.memories.of(rank_); }
  bool computes() const noexcept override { return parts_.options.execution == Execution::all; }
  std::size_t carried_bytes() const noexcept override { return parts_.network.options().carried_bytes(); }

 private:
  Parts& parts_;
  const std::uint32_t rank_;
  const std::uint32_t node_;  ///< its kind
  RankMachine machine_;
  runtime::ModelledHost host_;
  DrawnTimes drawn_;
};

void Simulation::Parts::note_packet(comm::Rank rank, std::size_t bytes, bool is_near) {
  places[rank.value()]->host().use_core(labour_ns(options.platform, bytes, is_near));
}

Simulation::Simulation(Options options) : parts_(std::make_unique<Parts>(std::move(options))) {
  keep_large_blocks_apart();
}

/// Programs that wait for ever keep what is on their stacks.
Simulation::~Simulation() {
  if (is_stuck_) (void)parts_.release();
}

void Simulation::sleep(std::uint32_t rank, std::int64_t ns) { parts_->job.sleep(rank, ns); }

std::int64_t Simulation::now_ns() const { return parts_->job.loop().now_ns(); }

Simulation::Outcome Simulation::run(const std::function<int(std::uint32_t rank)>& program) {
  Outcome outcome;
  const std::uint32_t ranks = parts_->options.platform.ranks;
  outcome.statuses.assign(ranks, 1);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    Place& place = *parts_->places.emplace_back(std::make_unique<Place>(*parts_, rank));
    parts_->job.add([this, &outcome, &program, &place, rank] {
      const runtime::VirtualPlace::Stay stay(place);
      try {
        outcome.statuses[rank] = program(rank);
      } catch (const std::exception& error) {
        if (outcome.error.empty())
          outcome.error = fmt::format("rank {} at {:.6f} s: {}", rank, static_cast<double>(now_ns()) * 1e-9,
                                      error.what());
      }
    });
  }
  const bool have_ended = parts_->job.run(Job::Turns::prompt);
  outcome.end_ns = now_ns();
  outcome.kernels.assign(parts_->kernels.begin(), parts_->kernels.end());
  outcome.without_model.assign(parts_->without_model.begin(), parts_->without_model.end());
  is_stuck_ = !have_ended;
  if (is_stuck_)
    outcome.error = fmt::format("at {:.6f} s nothing can go on: some ranks wait for ever{}",
                                static_cast<double>(outcome.end_ns) * 1e-9,
                                outcome.error.empty() ? "" : ", after " + outcome.error);
  return outcome;
}

}  // namespace tandem::sim
