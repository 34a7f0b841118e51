// tandem/linalg/kernels/pivot.hpp: operations of eliminations on a pivot. Private to the kernels.
#pragma once

#include <cmath>
#include <limits>

#include "tandem/linalg/types.hpp"

namespace tandem::linalg::internal {

/// |Re x| + |Im x|, by which LAPACK compares pivots: within a factor of sqrt(2) of |x| and without its square root.
template <Scalar T>
Real<T> pivot_size(T x) noexcept {
  if constexpr (is_complex<T>) {
    return std::abs(x.real()) + std::abs(x.imag());
  } else {
    return std::abs(x);
  }
}

/// x_i := x_i / pivot; by division if the pivot is so small that its reciprocal overflows.
template <Scalar T>
void divide_by_pivot(T pivot, T* first, T* last) noexcept {
  if (pivot_size(pivot) >= std::numeric_limits<Real<T>>::min()) {
    const T reciprocal = T(1) / pivot;
    for (T* x = first; x != last; ++x) *x = multiply(*x, reciprocal);
  } else {
    for (T* x = first; x != last; ++x) *x /= pivot;
  }
}

}  // namespace tandem::linalg::internal
