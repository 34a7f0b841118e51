// tandem/analysis/verdict/contention.hpp: whether kernels and large messages slow each other down.
#pragma once

#include <cstdint>

#include "tandem/analysis/verdict/beside.hpp"

namespace tandem::analysis {

/// Kernels and messages of `least_bytes` or more on the same hosts: both move data through memory (thesis, chapters 5
/// and 6; `tandem contention measure` shows a machine's bandwidth). A message is under way from its receiver's grant of
/// memory, or else its posting, to its arrival. `tasks` are those beside such messages; `slowed` is empty where these
/// do no harm.
///
/// Conversely, a message is beside kernels when workers of its hosts execute tasks for half of its time or more, on
/// average, and quiet when they do for a tenth or less. It is compared with quiet messages of its size between its
/// ranks, if there are `least_quiet`.
struct Contention : BesideTasks {
  std::uint64_t messages = 0;   ///< beside kernels, and compared
  double message_slowness = 1;  ///< the median of duration / median of the quiet ones

  /// Whether the tasks are slowed generally, not just a few.
  bool slows_tasks() const noexcept { return tasks >= least_compared && slowness >= least_slowness; }
  bool slows_messages() const noexcept { return messages >= least_compared && message_slowness >= least_slowness; }
  static constexpr std::uint64_t least_bytes = 64 << 10;
  static constexpr std::uint64_t least_compared = 16;
  static constexpr double least_slowness = 1.1;
};

/// Analyses contention. O(n log n) for n tasks and messages, and at most the tasks that begin or end during each large
/// message.
Contention contention(const History& history);

}  // namespace tandem::analysis
