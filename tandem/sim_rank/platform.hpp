// tandem/sim_rank/platform.hpp: the machine and the network of a simulated job.
#pragma once

#include <cstdint>

#include "tandem/comm/transport/loop/loop.hpp"

namespace tandem::sim {

/// Equal nodes behind one switch. Each rank sends one packet at a time at its rate, and a packet arrives a latency
/// after it has left; the switch itself is never full.
struct Platform {
  std::uint32_t ranks = 1;
  unsigned cores = 1;               ///< of each rank
  std::int64_t latency_ns = 1'500;  ///< from one rank to another
  double bytes_per_ns = 12.5;       ///< at which each rank sends: GB/s
};

/// The network between the ranks. Messages of more than 16 KiB take their time, but carry nothing.
comm::LoopOptions network_of(const Platform& platform);

}  // namespace tandem::sim
