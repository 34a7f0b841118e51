// tandem/sim_rank/rank_machine.cpp: spreads workers over NUMA nodes, and connects memories.
#include "tandem/sim_rank/rank_machine.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "tandem/base/exceptions.hpp"
#include "tandem/runtime/device/plain_device.hpp"
#include "tandem/runtime/worker/modelled_links.hpp"

namespace tandem::sim {
namespace {

using runtime::MachineLink;
using runtime::NodeIndex;
using runtime::World;

/// The memories of a world. A copy takes the slowest part of its way: that of a device, or between NUMA nodes.
class Memories {
 public:
  /// The way of a memory's copies within its NUMA node.
  struct Place {
    unsigned numa = 0;
    double bytes_per_ns = 1e6;  ///< memory of the processor: no way at all
    std::int64_t latency_ns = 0;
  };

  Memories(World& world, const Node& node, unsigned home, std::shared_ptr<runtime::ModelledLinks> links)
      : world_(world), node_(node), places_{{.numa = home}}, links_(std::move(links)) {}

  NodeIndex add(runtime::MachineNode memory, runtime::MessageMemory messages, const Place& place) {
    auto made = runtime::make_modelled_node(memory.name, messages);
    const NodeIndex index =
        world_.add_memory(std::move(memory), std::move(made), runtime::ModelledLinks::make_copier(links_));
    if (world_.machine.nodes[index].kind == runtime::NodeKind::device) links_->add_port(index);
    for (NodeIndex other = 0; other < index; ++other) connect(other, index, places_[other], place);
    places_.push_back(place);
    return index;
  }

 private:
  void connect(NodeIndex a, NodeIndex b, const Place& of_a, const Place& of_b) {
    MachineLink link{.bytes_per_ns = std::min(of_a.bytes_per_ns, of_b.bytes_per_ns),
                     .latency_ns = of_a.latency_ns + of_b.latency_ns,
                     .source = runtime::LinkSource::given};
    if (of_a.numa != of_b.numa) {
      link.bytes_per_ns = std::min(link.bytes_per_ns, node_.numa_bytes_per_ns);
      link.latency_ns += node_.numa_latency_ns;
    }
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      link.from = from;
      link.to = to;
      world_.machine.set_link(link);
      links_->add(link);
    }
  }

  World& world_;
  const Node& node_;
  std::vector<Place> places_;  ///< by memory
  const std::shared_ptr<runtime::ModelledLinks> links_;
};

std::string name_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cuda: return "CUDA device";
    case DeviceKind::opencl: return "OpenCL device";
    default: return "device";
  }
}

}  // namespace

RankMachine::RankMachine(const Platform& platform, std::uint32_t rank)
    : node_(platform.node_of(rank)),
      cores_(platform.cores_of(rank)),
      ranks_here_(std::min(platform.ranks_per_node, platform.ranks)),
      index_(rank % platform.ranks_per_node) {}

/// NUMA nodes of the rank's workers, in the order of cores, beginning with those of `home`.
std::vector<unsigned> RankMachine::numa_places(unsigned workers, std::optional<unsigned> home) const {
  std::vector<unsigned> places(workers);
  for (unsigned i = 0; i < workers; ++i) {
    const std::uint64_t of_node = std::uint64_t{index_} * workers + i;
    places[i] = static_cast<unsigned>(of_node * node_.numa_nodes / (std::uint64_t{workers} * ranks_here_));
  }
  if (!home) return places;
  const auto first = std::ranges::find(places, *home);
  if (first == places.end())
    throw UsageError(fmt::format("option caller.numa = {}: this rank has no cores there", *home));
  std::ranges::rotate(places, first);
  return places;
}

void RankMachine::furnish(World& world, const runtime::Furnishing& wanted, base::EventLoop& loop,
                          std::size_t carried_bytes) {
  const unsigned workers = wanted.workers != 0 ? wanted.workers : cores_;
  const std::vector<unsigned> places = numa_places(workers, wanted.home);
  const unsigned home = places.front();
  world.add_cpu_workers(workers);
  Memories memories(
      world, node_, home,
      std::make_shared<runtime::ModelledLinks>(loop, runtime::ModelledLinks::Options{.carried_bytes = carried_bytes}));
  std::map<unsigned, NodeIndex> memory_of{{home, 0}};
  slowness_.assign(workers, 1);
  for (unsigned i = 0; i < workers; ++i) {
    const unsigned numa = places[i];
    runtime::MachineWorker& worker = world.machine.workers[i];
    worker.numa_node = numa;
    for (unsigned other = 0; other < workers; ++other) world.machine.distance[i][other] = places[other] == numa ? 1 : 2;
    if (!wanted.divides_memory) {
      slowness_[i] = numa == home ? 1 : node_.remote;
      continue;
    }
    if (!memory_of.contains(numa))
      memory_of[numa] =
          memories.add({.kind = runtime::NodeKind::numa, .name = fmt::format("NUMA node {}", numa), .numa_node = numa},
                       runtime::MessageMemory::host, {.numa = numa});
    worker.node = memory_of[numa];
  }
  for (const DeviceGroup& group : node_.devices)
    for (unsigned i = index_; i < group.count; i += ranks_here_) {
      const unsigned numa = i % node_.numa_nodes;
      const std::string name = fmt::format("{} {}", name_of(group.kind), i);
      const NodeIndex memory = memories.add(
          {.kind = runtime::NodeKind::device, .name = name, .budget = group.memory_bytes}, runtime::MessageMemory::none,
          {.numa = numa, .bytes_per_ns = group.bytes_per_ns, .latency_ns = group.latency_ns});
      world.machine.workers.push_back({.kind = group.kind, .node = memory, .numa_node = numa});
      world.set_device(static_cast<unsigned>(world.machine.workers.size()) - 1,
                       std::make_unique<runtime::PlainDevice>(group.depth, name));
    }
}

}  // namespace tandem::sim
