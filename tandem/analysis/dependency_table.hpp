// tandem/analysis/dependency_table.hpp: which task needs which other one of its rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <stdexcept>

#include "tandem/analysis/spill_vector.hpp"
#include "tandem/analysis/task_table.hpp"

namespace tandem::analysis {

struct DependencyRow {
  std::uint32_t task = 0;         ///< row
  std::uint64_t predecessor = 0;  ///< id, of the same rank; its row may be missing where events were lost
};

/// Dependencies in the order in which they were recorded. A row holds by how much the predecessor's id is less than that of the task, modulo 2^32
/// as in the trace: less than 2^31 away. Refers to the tasks. One thread at a time.
class DependencyTable {
 public:
  DependencyTable(const std::shared_ptr<SpillMemory>& memory, const TaskTable& tasks) : tasks_(&tasks), rows_(memory, SpillUse::table) {}

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

  class Iterator;
  Iterator begin() const noexcept;
  Iterator end() const noexcept;

 private:
  const TaskTable* tasks_;
  SpillVector<Row> rows_;
};

class DependencyTable::Iterator {
 public:
  using value_type = DependencyRow;
  using reference = DependencyRow;
  using pointer = void;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;
  using iterator_concept = std::forward_iterator_tag;

  Iterator() = default;
  Iterator(const DependencyTable& table, std::size_t row) noexcept : table_(&table), row_(row) {}
  DependencyRow operator*() const noexcept { return (*table_)[row_]; }
  Iterator& operator++() noexcept {
    table_->rows_.touch();
    ++row_;
    return *this;
  }
  Iterator operator++(int) noexcept {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.row_ == b.row_; }

 private:
  const DependencyTable* table_ = nullptr;
  std::size_t row_ = 0;
};

inline DependencyTable::Iterator DependencyTable::begin() const noexcept { return {*this, 0}; }
inline DependencyTable::Iterator DependencyTable::end() const noexcept { return {*this, size()}; }

}  // namespace tandem::analysis
