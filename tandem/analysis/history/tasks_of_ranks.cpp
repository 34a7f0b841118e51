// tandem/analysis/history/tasks_of_ranks.cpp: the rows of the tasks of each rank, sorted by counting.
#include "tandem/analysis/history/tasks_of_ranks.hpp"

namespace tandem::analysis {

TasksOfRanks::TasksOfRanks(const History& history, const SpillVector<std::uint32_t>* list)
    : history_(history), list_(list), rows_(history.memory_of_tables()) {
  const TaskTable& tasks = history.tasks;
  std::pair<std::size_t, std::size_t>* place = nullptr;
  std::uint32_t last = 0;
  const auto go_to = [&](std::uint32_t rank) {
    if (place == nullptr || rank != last) place = &places_[rank];
    last = rank;
  };
  for_each_of_all([&](std::uint32_t row) {
    go_to(tasks.rank[row]);
    ++place->second;
  });
  if (places_.size() < 2) return;
  std::size_t begin = 0;
  for (auto& [rank, of] : places_) {
    const std::size_t count = of.second;
    of = {begin, begin};
    begin += count;
  }
  rows_.resize(begin);
  for_each_of_all([&](std::uint32_t row) {
    go_to(tasks.rank[row]);
    rows_[place->second++] = row;
  });
}

}  // namespace tandem::analysis
