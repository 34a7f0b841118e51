// tandem/analysis/bounds/measured_order.hpp: in which order workers ran tasks, and for which tasks the program waited.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// The tasks of each worker in the order of their beginnings. O(n log workers).
class WorkerOrder {
 public:
  explicit WorkerOrder(const History& history);

  /// The last task that this one's worker had ended before; no_number: none.
  std::uint32_t before(std::uint32_t row) const { return before_[row] - 1; }

 private:
  SpillVector<std::uint32_t> before_;  ///< one more than the row; 0: none
};

/// When the program of each rank continued after a wait, and which task had ended then. A wait is for the tasks of all
/// ranks. Refers to the history. O(n), and O(log n) for a query.
class Waits {
 public:
  explicit Waits(const History& history);

  /// The end of the last wait of the rank until `at_ns`.
  std::optional<std::int64_t> last_end(std::uint32_t rank, std::int64_t at_ns) const;
  /// The task that ended last until `at_ns`; for times that `last_end` has found.
  std::optional<std::uint32_t> last_ended(std::int64_t at_ns) const;

 private:
  const History& history_;
  std::map<std::uint32_t, std::vector<std::int64_t>> ends_;  ///< of waits, by rank
  SpillVector<std::uint32_t> by_end_;                        ///< rows of tasks
};

}  // namespace tandem::analysis
