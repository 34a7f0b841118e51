// tandem/analysis/tables/dependency_table.hpp: the predecessors of tasks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "tandem/analysis/tables/row_iterator.hpp"
#include "tandem/analysis/tables/spill_vector.hpp"
#include "tandem/analysis/tables/task_table.hpp"

namespace tandem::analysis {

struct DependencyRow {
  std::uint32_t task = 0;         ///< row
  std::uint64_t predecessor = 0;  ///< id, of the task's rank; its row may be missing where events were lost
};

/// Dependencies in the order of recording. A row holds the difference of the task's id and the predecessor's, modulo
/// 2^32 as in the trace: less than 2^31. Refers to the tasks. One thread at a time.
class DependencyTable {
 public:
  DependencyTable(const std::shared_ptr<SpillMemory>& memory, const TaskTable& tasks)
      : tasks_(&tasks), rows_(memory, SpillUse::table) {}

  struct Row {
    std::uint32_t task = 0;
    std::int32_t distance = 0;
  };
  void add(std::uint32_t task, std::uint64_t predecessor) {
    rows_.push_back({task, static_cast<std::int32_t>(static_cast<std::uint32_t>(tasks_->id[task] - predecessor))});
  }

  std::size_t size() const noexcept { return rows_.size(); }
  bool empty() const noexcept { return rows_.empty(); }
  std::uint32_t task(std::size_t row) const noexcept { return rows_[row].task; }
  DependencyRow operator[](std::size_t row) const noexcept {
    const Row& of = rows_[row];
    return {of.task, tasks_->id[of.task] - static_cast<std::uint64_t>(std::int64_t{of.distance})};
  }
  DependencyRow at(std::size_t row) const {
    if (row >= size()) throw std::out_of_range("DependencyTable::at");
    return (*this)[row];
  }

  using Iterator = RowIterator<DependencyTable, DependencyRow>;
  Iterator begin() const noexcept { return {*this, 0}; }
  Iterator end() const noexcept { return {*this, size()}; }
  /// Called at each step of a loop over rows.
  void touch() const noexcept { rows_.touch(); }

 private:
  const TaskTable* tasks_;
  SpillVector<Row> rows_;
};

}  // namespace tandem::analysis
