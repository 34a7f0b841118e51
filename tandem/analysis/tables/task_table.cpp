// tandem/analysis/tables/task_table.cpp: the tasks of a history, column by column.
#include "tandem/analysis/tables/task_table.hpp"

#include <array>

namespace tandem::analysis {

std::string_view name_of(TaskStatus status) noexcept {
  constexpr std::array<std::string_view, 7> names{"unknown", "submitted", "ready",    "running",
                                                  "done",    "failed",    "cancelled"};
  return names[static_cast<std::size_t>(status)];
}

std::uint32_t TaskTable::add_place(const TaskPlace& place) {
  const auto [at, added] = number_of_place_.try_emplace(place, static_cast<std::uint32_t>(places_.size()));
  if (added) places_.push_back(place);
  return at->second;
}

}  // namespace tandem::analysis
