// tandem/dist/flow_statistics.hpp: what a rank counts of the flow of several ranks.
#pragma once

#include <cstdint>

namespace tandem::dist {

/// Counted since the start, by this rank.
struct FlowStatistics {
  std::uint64_t positions = 0;        ///< operations of the flow so far, on any rank
  std::uint64_t tasks = 0;            ///< of them, run here
  std::uint64_t skipped = 0;          ///< of them, not submitted here (`Flow::skip`)
  std::uint64_t versions_sent = 0;    ///< versions that at least one other rank got from here
  std::uint64_t plain = 0;            ///< of them, with one recipient
  std::uint64_t broadcasts = 0;       ///< with several, in one broadcast: whole
  std::uint64_t split = 0;            ///< with several, in more than one message
  std::uint64_t recipients = 0;       ///< of all broadcasts, whole ones and the first messages of split ones
  std::uint64_t late = 0;             ///< recipients that came too late for the first message of their version
  std::uint64_t received = 0;         ///< messages with a version
  std::uint64_t received_bytes = 0;   ///< of these messages
  std::uint64_t sent_from_devices = 0;  ///< messages that were read in the memory of a device
  std::uint64_t received_in_devices = 0;  ///< messages that were written into it
  std::uint64_t most_copy_bytes = 0;  ///< reserved for copies at once, at most
};

}  // namespace tandem::dist
