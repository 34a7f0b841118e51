// tandem/runtime/memory/prefetch_report.hpp: what became of the program's hints to bring data somewhere.
#pragma once

#include <cstdint>

namespace tandem::runtime {

/// Counts of `Runtime::prefetch`. Exact after a `wait()`.
struct PrefetchReport {
  std::uint64_t hints = 0;    ///< so far
  std::uint64_t copied = 0;   ///< brought the value, or found it on its way
  std::uint64_t present = 0;  ///< the value was there
  std::uint64_t lost = 0;     ///< there was no value, no room, or the hint would have kept tasks from running at a time
};

}  // namespace tandem::runtime
