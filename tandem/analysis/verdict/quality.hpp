// tandem/analysis/verdict/quality.hpp: what a trace cannot show, because it is incomplete or its clocks do not agree.
#pragma once

#include <cstdint>

#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// Counts of what is missing. A rank whose folder is missing is counted once; its messages are not counted as missing.
struct Quality {
  std::uint64_t missing_ranks = 0;   ///< ranks of the job that the folder does not contain
  std::uint64_t cut_files = 0;       ///< files that end within a packet: a copy was cut off, or a disk was full
  std::uint64_t cut_events = 0;      ///< a lower bound of written events that no file contains
  std::uint64_t lost_events = 0;     ///< events that found no room in a buffer
  std::uint64_t lossy_actors = 0;    ///< actors that lost events
  std::int64_t tracer_waits_ns = 0;  ///< time for which actors waited for a buffer: the tracer slowed the run down

  std::uint64_t running_tasks = 0;    ///< tasks that began and never ended: the program was killed, or the end was lost
  std::uint64_t waiting_tasks = 0;    ///< submitted, neither begun nor cancelled; where some task of the rank began
  std::uint64_t failed_tasks = 0, cancelled_tasks = 0;

  std::uint64_t unmatched_receives = 0;  ///< arrived receives without a matching send
  std::uint64_t unmatched_sends = 0;     ///< posted sends without a matching arrival
  std::uint64_t open_receives = 0;       ///< posted receives for which nothing arrived
  std::uint64_t failed_messages = 0;
  /// Messages that arrive before they are posted, and the greatest such time: the clocks are wrong by at least this.
  std::uint64_t early_messages = 0;
  std::int64_t earliest_ns = 0;

  std::uint64_t clocks_by_date = 0;      ///< ranks whose clock was never compared, so that their system's date counts
  double worst_residual_ns = 0;          ///< the greatest distance of a comparison of clocks from the corrected clock
  double worst_residual_rms_ns = 0;      ///< the greatest of a rank's root of the mean square

  /// Whether nothing is missing and no time is impossible. Failed and cancelled tasks, failed messages and receives
  /// that are open at the end are events of the run, not defects of the trace.
  bool is_complete() const noexcept {
    return missing_ranks + cut_files + cut_events + lost_events + running_tasks + waiting_tasks + unmatched_receives +
               unmatched_sends + early_messages + clocks_by_date ==
           0;
  }
};

/// Counts the defects. O(n).
Quality quality(const History& history);

}  // namespace tandem::analysis
