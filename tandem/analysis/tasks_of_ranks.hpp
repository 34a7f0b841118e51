// tandem/analysis/tasks_of_ranks.hpp: the rows of the tasks of each rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <ranges>
#include <utility>

#include "tandem/analysis/history.hpp"

namespace tandem::analysis {

/// Analyses that count the tasks of a rank need memory for one rank at a time. 4 bytes per task, none where one rank has all. Refers to the history.
class TasksOfRanks {
 public:
  explicit TasksOfRanks(const History& history);

  /// The ranks that have tasks, in order.
  auto ranks() const { return std::views::keys(places_); }
  /// Calls `call(row)` for each task of the rank, in the order of rows.
  template <class Call>
  void for_each(std::uint32_t rank, Call call) const {
    const auto place = places_.find(rank);
    if (place == places_.end()) return;
    if (places_.size() == 1) {
      for (const std::uint32_t row : history_.tasks.rows()) call(row);
      return;
    }
    for (std::size_t i = place->second.first; i < place->second.second; ++i) {
      rows_.touch();
      call(rows_[i]);
    }
  }

 private:
  const History& history_;
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> places_;  ///< of each rank, where its rows begin in rows_, and end
  SpillVector<std::uint32_t> rows_;                                      ///< empty: all rows are of one rank
};

}  // namespace tandem::analysis
