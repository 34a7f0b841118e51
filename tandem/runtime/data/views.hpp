// tandem/runtime/data/views.hpp: what a kernel sees of a piece of data: a matrix view; vectors are std::span, scalars
// are T&.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

namespace tandem {

/// A column-major matrix in memory that it does not own: element (i, j) is at `data[i + j * ld]`, as in LAPACK.
/// `MatrixView<const T>` may only be read. A value: copying it copies no element.
template <class T>
struct MatrixView {
  T* data = nullptr;     ///< element (0, 0)
  std::size_t rows = 0;  ///< number of rows
  std::size_t cols = 0;  ///< number of columns
  std::size_t ld = 0;  ///< leading dimension, in elements; at least `rows`

  /// Element (i, j), counted from 0. Not checked.
  constexpr T& operator()(std::size_t i, std::size_t j) const noexcept { return data[i + j * ld]; }
  /// Whether it has no elements.
  constexpr bool empty() const noexcept { return rows == 0 || cols == 0; }

  /// The part of `row_count` by `col_count` elements whose first element is (`row`, `col`).
  constexpr MatrixView block(std::size_t row, std::size_t col, std::size_t row_count,
                             std::size_t col_count) const noexcept {
    return {data + row + col * ld, row_count, col_count, ld};
  }

  /// The same matrix as a view for reading only.
  constexpr operator MatrixView<const T>() const noexcept
    requires(!std::is_const_v<T>)
  {
    return {data, rows, cols, ld};
  }
};

/// An array of `n` dimensions in memory that it does not own: element (i, j, ...) is at `data[i * strides[0] + j *
/// strides[1] + ...]`. So a row-major matrix is `{data, {rows, cols}, {cols, 1}}`, and a block of a field with lx by ly
/// by lz elements has the strides `{1, lx, lx * ly}`. `ArrayView<const T, n>` may only be read. A value: copying it
/// copies no element.
template <class T, std::size_t n>
struct ArrayView {
  T* data = nullptr;                     ///< element (0, 0, ...)
  std::array<std::size_t, n> extents{};  ///< of each dimension
  std::array<std::size_t, n> strides{};  ///< of each dimension, in elements

  /// Element (i, j, ...), counted from 0. Not checked.
  template <class... Indices>
  constexpr T& operator()(Indices... indices) const noexcept {
    static_assert(sizeof...(Indices) == n, "an element has as many indices as the array has dimensions");
    std::size_t offset = 0;
    std::size_t dimension = 0;
    ((offset += static_cast<std::size_t>(indices) * strides[dimension++]), ...);
    return data[offset];
  }
  /// Number of elements.
  constexpr std::size_t size() const noexcept {
    std::size_t count = 1;
    for (const std::size_t extent : extents) count *= extent;
    return count;
  }

  /// The part of `counts` elements in each dimension whose first element is `first`.
  constexpr ArrayView block(const std::array<std::size_t, n>& first,
                            const std::array<std::size_t, n>& counts) const noexcept {
    std::size_t offset = 0;
    for (std::size_t d = 0; d < n; ++d) offset += first[d] * strides[d];
    return {data + offset, counts, strides};
  }

  /// The same array as a view for reading only.
  constexpr operator ArrayView<const T, n>() const noexcept
    requires(!std::is_const_v<T>)
  {
    return {data, extents, strides};
  }
};

}  // namespace tandem
