// tandem/sim_rank/platform.hpp: the machine and the network of a simulated job.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "tandem/comm/transport/loop/loop.hpp"
#include "tandem/model/contention/machine_file.hpp"
#include "tandem/runtime/device/modelled_host.hpp"

namespace tandem::sim {

/// Nodes behind one switch. Each sends one packet at a time at its rate, and receives one packet at a time meanwhile;
/// so do ranks among those of their node, each by itself, at another rate. A packet arrives a latency after it has
/// left; the switch itself is never full. Ranks that are processes have a network card each.
struct Platform {
  std::uint32_t ranks = 1;
  std::uint32_t ranks_per_node = 1;
  unsigned cores = 1;               ///< of each rank
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
/// The cores of one rank; `pass` lets time pass for its program.
runtime::ModelledHost::Options host_of(const Platform& platform, std::function<void(std::int64_t ns)> pass);
/// What a packet takes of a core at each of its ends.
std::int64_t labour_ns(const Platform& platform, std::size_t bytes, bool is_near);

}  // namespace tandem::sim
