// tandem/analysis/contention.hpp: whether kernels and large messages slow each other down.
#pragma once

#include <cstdint>

#include "tandem/analysis/beside.hpp"

namespace tandem::analysis {

/// Kernels and messages of `least_bytes` or more on the same hosts: both move data through memory (thesis, chapters 5 and 6; how much a machine
/// has of it, `tandem contention measure` says). A message is under way from when its receiver has granted it memory, or else from its posting, to its
/// arrival. `tasks` are those beside such messages; `slowed` is empty where these do no harm.
///
/// The other way round, a message is beside kernels when workers of its hosts execute tasks for half of its time or more, on average, and quiet when
/// they do for a tenth or less. It is compared with quiet ones of the same size between the same ranks, if there are `least_quiet`.
struct Contention : BesideTasks {
  std::uint64_t messages = 0;   ///< beside kernels, and compared
  double message_slowness = 1;  ///< the median of duration / median of the quiet ones

  /// Throughout, not a few.
  bool slows_tasks() const noexcept { return tasks >= least_compared && slowness >= least_slowness; }
  bool slows_messages() const noexcept { return messages >= least_compared && message_slowness >= least_slowness; }
  static constexpr std::uint64_t least_bytes = 64 << 10;
  static constexpr std::uint64_t least_compared = 16;
  static constexpr double least_slowness = 1.1;
};

/// O(n log n) for n tasks and messages, and at most the tasks that begin or end during each large message.
Contention contention(const History& history);

}  // namespace tandem::analysis
