// tandem/analysis/verdict/sending.hpp: the bandwidth of a rank's sends, as the rank sees it, and until their arrival.
#pragma once

#include <cstdint>
#include <vector>

#include "tandem/analysis/verdict/communication.hpp"

namespace tandem::analysis {

/// The messages that a rank sends; broadcasts are left out. `Traffic::bytes_per_s` is the bandwidth while at least one
/// is under way.
struct RankSending {
  std::uint32_t rank = 0;
  /// As the sender sees it (thesis, section 5.5): from the posting until the last byte was given to the network, or was
  /// read from this rank's memory; a large message from its receiver's grant, or, where the receiver reads it there,
  /// from the posting of the receive. A message that leaves within its posting takes no visible time, so it does not
  /// count.
  Traffic sent;
  /// From the posting to the arrival, on corrected clocks. Messages of which one of both is not known do not count.
  Traffic delivered;
};

/// Which messages count.
enum class Sent : std::uint8_t {
  all,
  flow_data,  ///< data of the task flow alone; the trace has the categories dist and broadcast
};
bool counts(const CommunicationRow& row, Sent which) noexcept;

/// The sending ranks, by rank. Failed messages are left out. O(n log n) for n messages.
std::vector<RankSending> sending(const History& history, Sent which = Sent::all);

}  // namespace tandem::analysis
