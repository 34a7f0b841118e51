// tandem/runtime/memory/prefetch_report.hpp: what became of the program's hints to bring data somewhere.
#pragma once

#include <cstdint>

namespace tandem::runtime {

/// Counts of `Runtime::prefetch`. Exact after a `wait()`.
struct PrefetchReport {
  std::uint64_t hints = 0;    ///< all hints so far
  std::uint64_t copied = 0;   ///< hints that brought the value, or found it on its way
  std::uint64_t present = 0;  ///< hints that found the value there
  std::uint64_t lost = 0;  ///< hints without a value or room, or that would have kept tasks from running concurrently
};

}  // namespace tandem::runtime
