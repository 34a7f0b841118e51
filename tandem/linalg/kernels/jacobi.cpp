// tandem/linalg/kernels/jacobi.cpp: column by column; points beside a block's first or last row or column are the
// halo's.
#include "tandem/linalg/kernels/jacobi.hpp"

#include <cmath>

#include "tandem/base/assert.hpp"

namespace tandem::linalg::kernels {
namespace {

/// The order of the additions is part of the result: blocks, borders and sequential sweeps agree in every bit.
template <class R>
R mean(R above, R below, R left, R right) noexcept {
  return R(0.25) * ((above + below) + (left + right));
}

/// The new value of any point.
template <class R>
R step(MatrixView<const R> u, const Halo<R>& halo, std::size_t i, std::size_t j) noexcept {
  const R* above = i > 0 ? &u(i - 1, j) : halo.above != nullptr ? halo.above + j : nullptr;
  const R* below = i + 1 < u.rows ? &u(i + 1, j) : halo.below != nullptr ? halo.below + j : nullptr;
  const R* left = j > 0 ? &u(i, j - 1) : halo.left != nullptr ? halo.left + i : nullptr;
  const R* right = j + 1 < u.cols ? &u(i, j + 1) : halo.right != nullptr ? halo.right + i : nullptr;
  const bool inside = above != nullptr && below != nullptr && left != nullptr && right != nullptr;
  return inside ? mean(*above, *below, *left, *right) : u(i, j);
}

template <class R, class Value>
void fill_borders(std::size_t rows, std::size_t cols, const Borders<R>& borders, const Value& value) {
  TANDEM_DEBUG_ASSERT(borders.top.size() == cols && borders.bottom.size() == cols && borders.left.size() == rows &&
                      borders.right.size() == rows);
  if (rows == 0 || cols == 0) return;
  for (std::size_t j = 0; j < cols; ++j) {
    borders.top[j] = value(0, j);
    borders.bottom[j] = value(rows - 1, j);
  }
  for (std::size_t i = 0; i < rows; ++i) {
    borders.left[i] = value(i, 0);
    borders.right[i] = value(i, cols - 1);
  }
}

}  // namespace

template <std::floating_point R>
void jacobi(std::type_identity_t<MatrixView<const R>> u, const Halo<R>& halo, MatrixView<R> v) {
  TANDEM_DEBUG_ASSERT(u.rows == v.rows && u.cols == v.cols);
  if (u.empty()) return;
  const std::size_t last = u.rows - 1;
  for (std::size_t j = 0; j < u.cols; ++j) {
    const R* here = &u(0, j);
    const R* left = j > 0 ? &u(0, j - 1) : halo.left;
    const R* right = j + 1 < u.cols ? &u(0, j + 1) : halo.right;
    R* to = &v(0, j);
    to[0] = step(u, halo, 0, j);
    if (left != nullptr && right != nullptr) {
      for (std::size_t i = 1; i < last; ++i) to[i] = mean(here[i - 1], here[i + 1], left[i], right[i]);
    } else {
      for (std::size_t i = 1; i < last; ++i) to[i] = here[i];
    }
    to[last] = step(u, halo, last, j);
  }
}

template <std::floating_point R>
void jacobi_borders(std::type_identity_t<MatrixView<const R>> u, const Halo<R>& halo, const Borders<R>& borders) {
  fill_borders(u.rows, u.cols, borders, [&](std::size_t i, std::size_t j) { return step(u, halo, i, j); });
}

template <std::floating_point R>
void copy_borders(std::type_identity_t<MatrixView<const R>> u, const Borders<R>& borders) {
  fill_borders(u.rows, u.cols, borders, [&](std::size_t i, std::size_t j) { return u(i, j); });
}

template <std::floating_point R>
R largest_difference(MatrixView<const R> u, std::type_identity_t<MatrixView<const R>> v) {
  TANDEM_DEBUG_ASSERT(u.rows == v.rows && u.cols == v.cols);
  R largest = 0;
  for (std::size_t j = 0; j < u.cols; ++j)
    for (std::size_t i = 0; i < u.rows; ++i) {
      const R difference = std::abs(u(i, j) - v(i, j));
      largest = largest > difference || std::isnan(largest) ? largest : difference;
    }
  return largest;
}

#define INSTANTIATE(R)                                                                           \
  template void jacobi<R>(MatrixView<const R>, const Halo<R>&, MatrixView<R>);                   \
  template void jacobi_borders<R>(MatrixView<const R>, const Halo<R>&, const Borders<R>&);       \
  template void copy_borders<R>(MatrixView<const R>, const Borders<R>&);                         \
  template R largest_difference<R>(MatrixView<const R>, MatrixView<const R>);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
