// tandem/runtime/data/views.hpp: what a kernel sees of a piece of data: a matrix view; vectors are std::span, scalars are T&.
#pragma once

#include <cstddef>
#include <type_traits>

namespace tandem {

/// A column-major matrix in memory that somebody else owns: element (i, j) stands at `data[i + j * ld]`, as LAPACK has it.
/// `MatrixView<const T>` may only be read. A value: copying it copies no element.
template <class T>
struct MatrixView {
  T* data = nullptr;     ///< element (0, 0)
  std::size_t rows = 0;  ///< of the matrix
  std::size_t cols = 0;  ///< of the matrix
  std::size_t ld = 0;  ///< leading dimension, in elements; at least `rows`

  /// Element (i, j), counted from 0. Not checked.
  constexpr T& operator()(std::size_t i, std::size_t j) const noexcept { return data[i + j * ld]; }
  /// Whether it has no elements.
  constexpr bool empty() const noexcept { return rows == 0 || cols == 0; }

  /// The part of `row_count` by `col_count` elements whose first element is (`row`, `col`).
  constexpr MatrixView block(std::size_t row, std::size_t col, std::size_t row_count, std::size_t col_count) const noexcept {
    return {data + row + col * ld, row_count, col_count, ld};
  }

  /// The same matrix, to be read only.
  constexpr operator MatrixView<const T>() const noexcept
    requires(!std::is_const_v<T>)
  {
    return {data, rows, cols, ld};
  }
};

}  // namespace tandem
