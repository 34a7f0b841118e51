// tandem/analysis/quality.hpp: what a trace cannot tell, because it is incomplete or its clocks do not agree.
#pragma once

#include <cstdint>

#include "tandem/analysis/history.hpp"

namespace tandem::analysis {

/// Counts of what is missing. A rank whose folder is missing is counted once; its messages are not counted as missing.
struct Quality {
  std::uint64_t missing_ranks = 0;   ///< of the job, that the folder does not hold
  std::uint64_t cut_files = 0;       ///< that end within a packet: a copy was cut off, or a disk was full
  std::uint64_t cut_events = 0;      ///< that were written, and that no file holds, there or in files that are missing: at least so many
  std::uint64_t lost_events = 0;     ///< that found no room in a buffer
  std::uint64_t lossy_actors = 0;    ///< that lost some
  std::int64_t tracer_waits_ns = 0;  ///< for which actors waited for a buffer: the tracer slowed the run down

  std::uint64_t running_tasks = 0;    ///< began, and never ended: the program was killed, or the end was lost
  std::uint64_t waiting_tasks = 0;    ///< were submitted, and neither began nor were cancelled; only where some task of the rank began
  std::uint64_t failed_tasks = 0, cancelled_tasks = 0;

  std::uint64_t unmatched_receives = 0;  ///< arrived, and no send fits
  std::uint64_t unmatched_sends = 0;     ///< posted, and no arrival fits
  std::uint64_t open_receives = 0;       ///< posted, and nothing arrived
  std::uint64_t failed_messages = 0;
  /// Messages that arrive before they are posted, and the greatest such time: the clocks are wrong by at least this.
  std::uint64_t early_messages = 0;
  std::int64_t earliest_ns = 0;

  std::uint64_t clocks_by_date = 0;      ///< ranks whose clock was never compared: the date of their system had to do
  double worst_residual_ns = 0;          ///< the greatest distance of a comparison of clocks from the corrected clock
  double worst_residual_rms_ns = 0;      ///< the greatest of a rank's root of the mean square

  /// Nothing is missing and no time is impossible. Failed and cancelled tasks, failed messages and receives that are open at the end are
  /// what happened, not defects of the trace.
  bool is_complete() const noexcept {
    return missing_ranks + cut_files + cut_events + lost_events + running_tasks + waiting_tasks + unmatched_receives + unmatched_sends + early_messages + clocks_by_date == 0;
  }
};

/// O(n).
Quality quality(const History& history);

}  // namespace tandem::analysis
