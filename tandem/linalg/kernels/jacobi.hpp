// tandem/linalg/kernels/jacobi.hpp: one Jacobi step of the 5-point stencil on a block of a grid, and on its borders
// alone.
#pragma once

#include <concepts>
#include <span>
#include <type_traits>

#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// The points around a block, which belong to its neighbours: the last row of the block above it, the first of the one
/// below, the last column of the one to the left, the first of the one to the right. Null where there is no neighbour:
/// there the block ends with the grid, and its outermost points keep their values.
template <class R>
struct Halo {
  const R* above = nullptr;  ///< one number per column of the block
  const R* below = nullptr;  ///< one number per column of the block
  const R* left = nullptr;   ///< one number per row of the block
  const R* right = nullptr;  ///< one number per row of the block
};

/// The outermost points of a block, as its neighbours need them: spans of its columns, columns, rows and rows.
template <class R>
struct Borders {
  std::span<R> top;     ///< one number per column of the block
  std::span<R> bottom;  ///< one number per column of the block
  std::span<R> left;    ///< one number per row of the block
  std::span<R> right;   ///< one number per row of the block
};

/// v := u after one step: v(i,j) = ((u(i-1,j) + u(i+1,j)) + (u(i,j-1) + u(i,j+1))) / 4, and at the grid's edges v = u.
/// Blocks have equal shapes and do not overlap. R is float or double. Sequential, like the functions below; safe from
/// any thread.
template <std::floating_point R>
void jacobi(std::type_identity_t<MatrixView<const R>> u, const Halo<R>& halo, MatrixView<R> v);

/// The borders of what `jacobi` would give, with the same bits, at the cost of the borders.
template <std::floating_point R>
void jacobi_borders(std::type_identity_t<MatrixView<const R>> u, const Halo<R>& halo, const Borders<R>& borders);

/// The borders of u.
template <std::floating_point R>
void copy_borders(std::type_identity_t<MatrixView<const R>> u, const Borders<R>& borders);

/// max |u(i,j) - v(i,j)|; a NaN gives NaN.
template <std::floating_point R>
R largest_difference(MatrixView<const R> u, std::type_identity_t<MatrixView<const R>> v);

}  // namespace tandem::linalg::kernels
