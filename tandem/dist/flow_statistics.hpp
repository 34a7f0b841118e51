// tandem/dist/flow_statistics.hpp: counts of a rank in the flow of several ranks.
#pragma once

#include <cstdint>

namespace tandem::dist {

/// Counts of this rank since the start.
struct FlowStatistics {
  std::uint64_t positions = 0;        ///< operations of the flow so far, on any rank
  std::uint64_t tasks = 0;            ///< operations that are tasks run here
  std::uint64_t skipped = 0;          ///< operations not submitted here (`Flow::skip`)
  std::uint64_t versions_sent = 0;    ///< versions that at least one other rank got from here
  std::uint64_t plain = 0;            ///< versions with one recipient
  std::uint64_t broadcasts = 0;       ///< versions with several recipients, in one broadcast: whole
  std::uint64_t split = 0;            ///< versions with several recipients, in more than one message
  /// Recipients of all broadcasts: of whole ones, and of the first messages of split ones.
  std::uint64_t recipients = 0;
  std::uint64_t late = 0;             ///< recipients that came too late for the first message of their version
  std::uint64_t received = 0;         ///< messages with a version
  std::uint64_t received_bytes = 0;   ///< bytes of these messages
  std::uint64_t sent_from_devices = 0;  ///< messages that were read in the memory of a device
  std::uint64_t received_in_devices = 0;  ///< messages that were written into the memory of a device
  std::uint64_t most_copy_bytes = 0;  ///< most bytes reserved for copies at once
};

}  // namespace tandem::dist
