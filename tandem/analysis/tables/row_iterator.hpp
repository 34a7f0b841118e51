// tandem/analysis/tables/row_iterator.hpp: iterates over the rows of a table that assembles each row on access.
#pragma once

#include <cstddef>
#include <iterator>

namespace tandem::analysis {

/// `Table` has `operator[]`, which returns a `Row`, and `touch`, which is called at each step (`SpillMemory::touch`).
template <class Table, class Row>
class RowIterator {
 public:
  using value_type = Row;
  using reference = Row;
  using pointer = void;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;
  using iterator_concept = std::forward_iterator_tag;

  RowIterator() = default;
  RowIterator(const Table& table, std::size_t row) noexcept : table_(&table), row_(row) {}
  Row operator*() const noexcept { return (*table_)[row_]; }
  RowIterator& operator++() noexcept {
    table_->touch();
    ++row_;
    return *this;
  }
  RowIterator operator++(int) noexcept {
    const RowIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const RowIterator& a, const RowIterator& b) noexcept { return a.row_ == b.row_; }

 private:
  const Table* table_ = nullptr;
  std::size_t row_ = 0;
};

}  // namespace tandem::analysis
