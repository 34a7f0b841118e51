// tandem/sim_rank/platform.cpp: a platform's network.
#include "tandem/sim_rank/platform.hpp"

namespace tandem::sim {

comm::LoopOptions network_of(const Platform& platform) {
  comm::LoopOptions network;
  network.ranks = platform.ranks;
  network.ranks_per_host = 1;
  network.eager_bytes = 16 << 10;
  network.segment_bytes = 64 << 10;
  network.payload_bytes = 1 << 20;
  network.bulk_travels = false;
  network.latency_min_ns = network.latency_max_ns = platform.latency_ns;
  network.bytes_per_ns = platform.bytes_per_ns;
  network.receives_one_by_one = true;
  return network;
}

}  // namespace tandem::sim
