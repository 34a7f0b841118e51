// tandem/sim_rank/platform.hpp: the machine and the network of a simulated job.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tandem/comm/transport/loop/loop.hpp"
#include "tandem/model/contention/machine_file.hpp"
#include "tandem/runtime/device/modelled_host.hpp"
#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::sim {

/// Devices of a node that are alike. Each is a worker with a memory of its own.
struct DeviceGroup {
  DeviceKind kind = DeviceKind::cuda;
  unsigned count = 1;                ///< of a node; near its NUMA nodes in turn
  std::size_t memory_bytes = 0;      ///< of each; 0: no limit
  std::int64_t latency_ns = 10'000;  ///< of a copy from or to main memory
  double bytes_per_ns = 12;          ///< of such copies, in each direction
  unsigned depth = 2;                ///< tasks in flight on each
};

/// Nodes that are alike: what is in one of them, which its ranks share.
struct Node {
  std::uint32_t count = 0;        ///< of such nodes; 0: all that are left
  unsigned cores = 0;             ///< of each rank; 0: as the platform says
  unsigned numa_nodes = 1;        ///< over which cores and devices are spread
  double numa_bytes_per_ns = 10;  ///< of copies between two of them, in each direction
  std::int64_t numa_latency_ns = 1'000;
  /// How many times as long kernels of CPU workers take whose data is on another NUMA node.
  double remote = 1;
  std::vector<DeviceGroup> devices = {};
};

/// Nodes behind one switch. Each sends one packet at a time at its rate, and receives one packet at a time meanwhile;
/// so do ranks among those of their node, each by itself, at another rate. A packet arrives a latency after it has
/// left; the switch itself is never full. Ranks that are processes have a network card each.
struct Platform {
  std::uint32_t ranks = 1;
  std::uint32_t ranks_per_node = 1;
  unsigned cores = 1;                  ///< of each rank, where its node has no number of its own
  std::vector<Node> nodes = {Node{}};  ///< kinds of nodes: ranks are first on those of the first kind
  std::int64_t latency_ns = 1'500;  ///< from one node to another
  double bytes_per_ns = 12.5;       ///< at which each node sends, and another receives: GB/s
  std::int64_t node_latency_ns = 600;  ///< from one rank of a node to another one
  double node_bytes_per_ns = 8;        ///< between these
  std::size_t segment_bytes = std::size_t{64} << 10;  ///< payload of a packet of a large message
  // Standard deviations, relative to the mean: of the speeds of nodes, and of a whole run.
  double node_spread = 0;
  double run_spread = 0;
  // What the runtime's own work takes (`runtime::RuntimeCosts`).
  std::int64_t submit_ns = 0;
  std::int64_t task_ns = 0;
  std::int64_t wake_ns = 0;
  std::int64_t packet_ns = 0;    ///< of a core, to send or receive a packet
  double copy_bytes_per_ns = 0;  ///< of a core, for a packet between ranks of a node; 0: no time
  /// How kernels and messages share the memory of a node; none: they do not.
  std::optional<model::contention::StoredMachine> contention = {};

  /// The kind of a rank's node: an index of `nodes`.
  std::uint32_t kind_of(std::uint32_t rank) const noexcept;
  const Node& node_of(std::uint32_t rank) const noexcept { return nodes[kind_of(rank)]; }
  unsigned cores_of(std::uint32_t rank) const noexcept {
    return node_of(rank).cores != 0 ? node_of(rank).cores : cores;
  }
  /// Turns cores of nodes into those of ranks: `given` for each, or a rank's share.
  void divide_cores(std::optional<unsigned> given) noexcept;
  /// Nothing gets from one rank to another one sooner.
  std::int64_t least_latency_ns() const noexcept {
    return ranks_per_node > 1 ? std::min(latency_ns, node_latency_ns) : latency_ns;
  }
};

/// Which kernels run in a simulation, beside taking their modelled times (`KernelTime::computes`).
enum class Execution : std::uint8_t { none, some, all };

/// The network between the ranks. Where no kernel runs, messages of more than 16 KiB take their time, but carry
/// nothing.
comm::LoopOptions network_of(const Platform& platform, Execution execution);
/// The cores of a rank; `pass` lets time pass for its program.
runtime::ModelledHost::Options host_of(const Platform& platform, std::uint32_t rank,
                                       std::function<void(std::int64_t ns)> pass);
/// What a packet takes of a core at each of its ends.
std::int64_t labour_ns(const Platform& platform, std::size_t bytes, bool is_near);

}  // namespace tandem::sim
