// tandem/analysis/shared_processors.hpp: whether workers of a host had to take turns.
#pragma once

#include <optional>

#include "tandem/analysis/history.hpp"

namespace tandem::analysis {

struct SharedProcessors {
  unsigned workers = 0;  ///< with threads that execute kernels
  unsigned pus = 0;      ///< hardware threads on which their ranks might run
};

/// Of the host with the most workers for a hardware thread, if there are more workers than hardware threads on it; other hosts may have as many. Hosts
/// with a rank of which hardware threads are not known are left out. What other programs ran there is not known.
std::optional<SharedProcessors> shared_processors(const History& history);

}  // namespace tandem::analysis
