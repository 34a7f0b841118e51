// tandem/sim/platform.hpp: the machine and the network of a simulated job.
#pragma once

#include <cstdint>

namespace tandem::sim {

/// Equal nodes behind one switch. Each rank sends one packet at a time at its rate, and a packet arrives a latency
/// after it has left; the switch itself is never full.
struct Platform {
  std::uint32_t ranks = 1;
  unsigned cores = 1;              ///< of each rank
  std::int64_t latency_ns = 1'500;  ///< from one rank to another
  double bytes_per_ns = 12.5;      ///< at which each rank sends: GB/s
};

}  // namespace tandem::sim
