// tandem/sim_rank/platform.hpp: the machine and the network of a simulated job.
#pragma once

#include <cstdint>

#include "tandem/comm/transport/loop/loop.hpp"

namespace tandem::sim {

/// Nodes behind one switch, with a rank each, whose network card sends one packet at a time at its rate, and receives
/// one packet at a time meanwhile. A packet arrives a latency after it has left; the switch itself is never full.
struct Platform {
  std::uint32_t ranks = 1;
  unsigned cores = 1;               ///< of each rank
  std::int64_t latency_ns = 1'500;  ///< from one rank to another
  double bytes_per_ns = 12.5;       ///< at which each rank sends, and another receives: GB/s
  double node_spread = 0;           ///< standard deviation of the speeds of nodes, relative to their mean
};

/// The network between the ranks. Messages of more than 16 KiB take their time, but carry nothing.
comm::LoopOptions network_of(const Platform& platform);

}  // namespace tandem::sim
