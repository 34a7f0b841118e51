// tandem/analysis/verdict/memory_use.hpp: how much memory data had on each memory node.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// Bytes of Tandem's data and received copies on a memory node of a rank, from the events `data.allocated` and
/// `data.freed`. Where more was freed than allocated, the difference had been allocated before the first event, and
/// counts from the beginning on.
struct NodeMemory {
  std::uint32_t rank = 0;
  std::uint16_t node = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t peak_at_ns = 0;   ///< first time of the peak, since the first event of the run
  double mean_bytes = 0;         ///< over time, from the first to the last event of the run
  std::int64_t last_bytes = 0;   ///< in use when the run ended
  std::uint64_t allocations = 0;
};

/// The memory by rank and node. O(n log n).
std::vector<NodeMemory> memory_use(const History& history);

}  // namespace tandem::analysis
