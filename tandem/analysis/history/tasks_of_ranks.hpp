// tandem/analysis/history/tasks_of_ranks.hpp: the rows of the tasks of each rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <ranges>
#include <utility>

#include "tandem/analysis/history/history.hpp"

namespace tandem::analysis {

/// The rows of tasks by rank, for analyses that need memory for one rank at a time. 4 bytes per task, none where one
/// rank has all. Refers to the history, and to the list.
class TasksOfRanks {
 public:
  /// All tasks, in the order of rows.
  explicit TasksOfRanks(const History& history) : TasksOfRanks(history, nullptr) {}
  /// The tasks of a list, in its order.
  TasksOfRanks(const History& history, const SpillVector<std::uint32_t>& list) : TasksOfRanks(history, &list) {}

  /// The ranks that have tasks, in order.
  auto ranks() const { return std::views::keys(places_); }
  /// Calls `call(row)` for each task of the rank.
  template <class Call>
  void for_each(std::uint32_t rank, Call call) const {
    const auto place = places_.find(rank);
    if (place == places_.end()) return;
    if (places_.size() == 1) return for_each_of_all(call);
    for (std::size_t i = place->second.first; i < place->second.second; ++i) {
      rows_.touch();
      call(rows_[i]);
    }
  }

 private:
  TasksOfRanks(const History& history, const SpillVector<std::uint32_t>* list);
  template <class Call>
  void for_each_of_all(Call call) const {
    if (list_ == nullptr) {
      for (const std::uint32_t row : history_.tasks.rows()) call(row);
      return;
    }
    for (const std::uint32_t row : *list_) {
      list_->touch();
      call(row);
    }
  }

  const History& history_;
  const SpillVector<std::uint32_t>* list_;                               ///< null: all rows
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> places_;  ///< begin and end of a rank's rows in rows_
  SpillVector<std::uint32_t> rows_;                                      ///< empty: all rows are of one rank
};

}  // namespace tandem::analysis
