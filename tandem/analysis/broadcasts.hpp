// tandem/analysis/broadcasts.hpp: how many broadcasts there were, how long they took, and what went to several ranks without one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tandem/analysis/history.hpp"
#include "tandem/analysis/quartiles.hpp"

namespace tandem::analysis {

/// Data that went from one rank to several: the versions of data of a rank with at least two recipients, as the events `dist` tell. A recipient
/// that received a version more than once counts once.
struct SharedData {
  std::uint64_t versions = 0;
  std::uint64_t recipients = 0, by_broadcast = 0;              ///< of all versions, and those that had it by a broadcast
  std::uint64_t bytes = 0, bytes_by_broadcast = 0;             ///< the same, times the size
  std::uint64_t split = 0;                                     ///< versions that went by more than one broadcast, or by one and by plain messages

  /// The share of the recipients that were served by broadcasts (the detection rate); nothing where there are none.
  std::optional<double> detection_rate() const noexcept {
    return recipients == 0 ? std::nullopt : std::optional(static_cast<double>(by_broadcast) / static_cast<double>(recipients));
  }
};

/// How long the arrivals of broadcasts of each size took, from the posting: a broadcast's size in bytes, and quartiles in ns.
using BroadcastDelays = std::map<std::uint64_t, Quartiles>;

struct Broadcasts {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;      ///< to all recipients
  std::optional<Quartiles> recipients;   ///< of a broadcast, numbers of ranks
  std::optional<Quartiles> durations;    ///< from its posting to its last arrival, in ns; of broadcasts that all known recipients have received
  BroadcastDelays delays;                ///< of arrivals that are known
  /// Arrivals that are outliers among those of broadcasts of the same size (from posting to arrival), and what they took beyond the median.
  std::uint64_t late = 0;
  std::int64_t late_excess_ns = 0;
  std::uint64_t arrivals = 0;   ///< that are known
  std::uint64_t awaited = 0;    ///< of these: the receive was posted before the broadcast was
  std::uint64_t declined = 0;   ///< times that a rank had no room to forward
  SharedData shared;
};

/// O(n log n) for n messages and broadcasts.
Broadcasts broadcasts(const History& history);
/// As `Broadcasts::shared` has it. O(n log n).
SharedData shared_data(const History& history);

/// A recipient of a broadcast, and from whom it had the data. With two strands there are two for a recipient.
struct BroadcastEdge {
  std::uint32_t communication = 0;   ///< row; its destination is the recipient, its `broadcast` the broadcast
  std::uint32_t parent = no_number;  ///< rank: one that forwarded, or the root where nobody else is known to have sent it
  std::int64_t begun_ns = no_time;   ///< when the parent began to send; of the root: when its route was chosen, else when it was posted
  bool late = false;                 ///< the arrival counts among `Broadcasts::late`
};
/// What the trees of all broadcasts looked like in time: arrivals that are known, by row. Forwards carry root and tag alone; where a root
/// used a tag again, a forward belongs to the first broadcast to that child that could have been under way and has no other from that rank.
/// `delays`: `Broadcasts::delays` of this history. O(n log n).
std::vector<BroadcastEdge> broadcast_edges(const History& history, const BroadcastDelays& delays);

/// What the network did at its best in a run: no broadcast is expected to be shorter than the best message of its size.
struct FastestMessage {
  std::int64_t shortest_ns = no_time;  ///< from posting to arrival, of any message between two ranks
  double bytes_per_ns = 0;             ///< the highest rate of one message

  /// max(a, m / r) for m bytes, with the shortest time a and the highest rate r; 0 where nothing is known. The root has to send the bytes
  /// at least once, and no message of this run was faster. It is the usual bound max(a L, b m) of L rounds without the rounds: ranks of a
  /// host may send to several others within one latency.
  double bound_ns(std::uint64_t bytes) const noexcept;
};
/// O(n). Messages that seem to arrive before they were posted, by errors of clocks, do not count.
FastestMessage fastest_message(const History& history);

}  // namespace tandem::analysis
