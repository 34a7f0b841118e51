// tandem/analysis/verdict/broadcasts.hpp: how many broadcasts there were, how long they took, and what went to several
// ranks without one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tandem/analysis/history/history.hpp"
#include "tandem/analysis/tables/quartiles.hpp"

namespace tandem::analysis {

/// Data that went from one rank to several: versions of a rank's data with at least two recipients, by the events of
/// `dist`. A recipient that received a version more than once counts once.
struct SharedData {
  std::uint64_t versions = 0;
  std::uint64_t recipients = 0, by_broadcast = 0;              ///< of all versions, and those served by broadcasts
  std::uint64_t bytes = 0, bytes_by_broadcast = 0;             ///< these recipients times the size
  std::uint64_t split = 0;  ///< versions that went by more than one broadcast, or by one and by plain messages

  /// The share of the recipients that broadcasts served (the detection rate); empty where there are none.
  std::optional<double> detection_rate() const noexcept {
    return recipients == 0 ? std::nullopt
                           : std::optional(static_cast<double>(by_broadcast) / static_cast<double>(recipients));
  }
};

/// How long the arrivals of broadcasts of each size took from the posting: size in bytes, quartiles in ns.
using BroadcastDelays = std::map<std::uint64_t, Quartiles>;

struct Broadcasts {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;      ///< to all recipients
  std::optional<Quartiles> recipients;   ///< number of ranks per broadcast
  std::optional<Quartiles> durations;    ///< from posting to last arrival, in ns; if all known recipients have it
  /// Median over those with a duration: how many times as long plain messages would take one after the other, n m / r
  /// for n recipients of m bytes at the highest rate r of any message of the run. Empty without such a rate.
  std::optional<double> gain;
  BroadcastDelays delays;                ///< of arrivals that are known
  /// Arrivals that are outliers among those of broadcasts of their size (from posting to arrival), and their time
  /// beyond the median.
  std::uint64_t late = 0;
  std::int64_t late_excess_ns = 0;
  std::uint64_t arrivals = 0;   ///< that are known
  std::uint64_t awaited = 0;    ///< of these: the receive was posted before the broadcast was
  std::uint64_t declined = 0;   ///< times that a rank had no room to forward
  SharedData shared;
};

/// Analyses the broadcasts of a run. O(n log n) for n messages and broadcasts.
Broadcasts broadcasts(const History& history);
/// The content of `Broadcasts::shared`. O(n log n).
SharedData shared_data(const History& history);

/// A recipient of a broadcast, and the rank from which it had the data; with two strands, two entries for a recipient.
struct BroadcastEdge {
  std::uint32_t communication = 0;   ///< row; its destination is the recipient, its `broadcast` the broadcast
  std::uint32_t parent = no_number;  ///< when the parent began to send; root: its route was chosen, or posting
  std::int64_t begun_ns = no_time;   ///< start of the parent's sending; root: choice of its route, else its posting
  bool late = false;                 ///< the arrival counts among `Broadcasts::late`
};
/// The known arrivals of all broadcasts, by row, with their parents. Forwards carry root and tag alone; where a root
/// reused a tag, a forward belongs to the first broadcast to that child that could have been under way and has no other
/// from that rank. `delays`: `Broadcasts::delays` of this history. O(n log n).
std::vector<BroadcastEdge> broadcast_edges(const History& history, const BroadcastDelays& delays);

/// The best performance of the network in a run: no broadcast is expected to be shorter than the best message of its
/// size.
struct FastestMessage {
  std::int64_t shortest_ns = no_time;  ///< from posting to arrival, of any message between two ranks
  double bytes_per_ns = 0;             ///< the highest rate of one message

  /// max(a, m / r) for m bytes, with the shortest time a and the highest rate r; 0 where nothing is known. The root has
  /// to send the bytes at least once, and no message of this run was faster. It is the usual bound max(a L, b m) of L
  /// rounds without the rounds: ranks of a host may send to several others within one latency.
  double bound_ns(std::uint64_t bytes) const noexcept;
};
/// The fastest message. O(n). Messages that seem to arrive before they were posted, by errors of clocks, do not count.
FastestMessage fastest_message(const History& history);

}  // namespace tandem::analysis
