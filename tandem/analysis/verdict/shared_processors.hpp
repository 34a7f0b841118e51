// tandem/analysis/verdict/shared_processors.hpp: whether workers of a host had to take turns.
#pragma once

#include <optional>

#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

struct SharedProcessors {
  unsigned workers = 0;  ///< workers whose threads execute kernels
  unsigned pus = 0;      ///< hardware threads on which their ranks might run
};

/// The host with the most workers for a hardware thread, if it has more workers than hardware threads; other hosts may
/// have as many. Hosts with a rank whose hardware threads are not known are left out. Other programs on the host are
/// not known.
std::optional<SharedProcessors> shared_processors(const History& history);

}  // namespace tandem::analysis
