// python/src/arrays.hpp: numpy arrays that own the memory of a C++ vector, without a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "tandem/analysis/tables.hpp"

namespace tandem::python {

namespace nb = nanobind;

/// A one-dimensional numpy array; it frees the vector when Python frees it.
template <class T>
nb::object array_of(std::vector<T> values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* const data = owned->data();
  const std::size_t size = owned->size();
  const nb::capsule owner(owned.release(), [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
}

/// One value of each row: `value(row)` is converted to T.
template <class T, class Function>
std::vector<T> collect(std::size_t rows, Function value) {
  std::vector<T> values(rows);
  for (std::size_t row = 0; row < rows; ++row) values[row] = static_cast<T>(value(row));
  return values;
}

/// Texts of a column, each once, in the order in which they appear: (number of each row's text, ends of texts from 0
/// on, their bytes).
inline nb::object dictionary_of(const analysis::Texts& texts, const std::vector<std::uint32_t>& ids) {
  std::vector<std::int32_t> place(texts.size(), -1), places(ids.size());
  std::vector<std::int64_t> ends{0};
  std::vector<std::uint8_t> bytes;
  for (std::size_t row = 0; row < ids.size(); ++row) {
    std::int32_t& known = place[ids[row]];
    if (known < 0) {
      known = static_cast<std::int32_t>(ends.size() - 1);
      const std::string& text = texts[ids[row]];
      bytes.insert(bytes.end(), text.begin(), text.end());
      ends.push_back(static_cast<std::int64_t>(bytes.size()));
    }
    places[row] = known;
  }
  return nb::make_tuple(array_of(std::move(places)), array_of(std::move(ends)), array_of(std::move(bytes)));
}

/// The values of a column; of texts what `dictionary_of` returns. Missing values are still the numbers that stand for
/// them.
inline nb::object column_values(const analysis::Texts& texts, const analysis::Table& table,
                                const analysis::Column& column) {
  using enum analysis::ColumnKind;
  switch (column.kind) {
    case time:
    case i64: return array_of(collect<std::int64_t>(table.rows, column.integer));
    case id:
    case u64: return array_of(collect<std::uint64_t>(table.rows, column.integer));
    case number: return array_of(collect<std::uint32_t>(table.rows, column.integer));
    case worker: return array_of(collect<std::uint16_t>(table.rows, column.integer));
    case i32: return array_of(collect<std::int32_t>(table.rows, column.integer));
    case flag: return array_of(collect<std::uint8_t>(table.rows, column.integer));
    case real: return array_of(collect<double>(table.rows, column.real));
    case text: return dictionary_of(texts, collect<std::uint32_t>(table.rows, column.integer));
  }
  return nb::none();
}

}  // namespace tandem::python
