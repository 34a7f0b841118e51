// tandem/analysis/verdict/communication.hpp: the traffic between ranks, its speed, and how long workers waited for it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/analysis/bounds/task_graph.hpp"
#include "tandem/analysis/history/history.hpp"
#include "tandem/analysis/tables/quartiles.hpp"
#include "tandem/analysis/verdict/time_split.hpp"

namespace tandem::analysis {

/// An entry of the matrix. Messages count from their source to their destination: each recipient of a broadcast has one
/// from the root, whichever ranks forward it.
struct RankPair {
  std::uint32_t source = 0, destination = 0;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::int64_t total_ns = 0;  ///< from posting to arrival, of those for which both are known
};

/// The messages of a rank, in one direction. A message is under way from its posting to its arrival.
struct Traffic {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::int64_t busy_ns = 0;              ///< time in which at least one was under way
  std::int64_t most_at_once = 0;         ///< most that were under way at once
  /// Bytes per second while at least one was under way; 0: not known.
  double bytes_per_s() const noexcept {
    return busy_ns == 0 ? 0 : 1e9 * static_cast<double>(bytes) / static_cast<double>(busy_ns);
  }
};

/// Times of workers are added up over the workers of the rank, within the makespan.
struct RankCommunication {
  std::uint32_t rank = 0;
  Traffic in, out;
  /// Idle time that only data of other ranks could have changed (`Spent::awaiting_message`).
  std::int64_t awaiting_ns = 0;
  /// Exposed: the part of `awaiting_ns` in which a message for the rank was under way. In the rest the data had not
  /// been sent yet.
  std::int64_t exposed_ns = 0;
  /// Hidden: time of kernels while a message for the rank was under way.
  std::int64_t overlapped_ns = 0;
};

struct Communication {
  std::vector<RankPair> matrix;          ///< by source and destination; pairs that exchanged nothing are left out
  std::vector<RankCommunication> ranks;  ///< by rank; those with workers or messages
  /// Times of one message, in ns; empty where they are not known for any.
  std::optional<Quartiles> sent_to_arrived;  ///< from its posting to its arrival
  std::optional<Quartiles> arrived_to_used;  ///< from its arrival to the start of the first task that depends on it

  std::uint64_t messages() const noexcept;
  std::uint64_t bytes() const noexcept;
  /// The share of overlapped time in the time that messages under way took or could have taken: overlapped /
  /// (overlapped + exposed). Empty where both are 0.
  std::optional<double> overlap() const noexcept;
};

/// Analyses messages, except failed ones and those whose other rank is not known. O(n log n) for n messages, tasks and
/// states, and at most the messages of each rank times its workers.
Communication communication(const History& history, const TaskGraph& graph, const TimeSplit& split);

}  // namespace tandem::analysis
