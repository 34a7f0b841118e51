// tandem/linalg/kernels/getrf_nopiv.hpp: LU factorisation of one tile without pivoting.
#pragma once

#include <cstddef>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// A = L U for A m x n of any shape; L, unit lower trapezoidal, and U, upper trapezoidal, replace A. Without pivoting
/// that is stable for matrices that are diagonally dominant, or whose rows were put in order before (flows/getrf.hpp).
/// Returns LAPACK's info: 0, or k when the k-th pivot is exactly zero; then the first k - 1 columns of L and rows of U
/// are done, and the rest is not finished. Sequential, allocates nothing.
template <Scalar T>
std::size_t getrf_nopiv(MatrixView<T> a);

}  // namespace tandem::linalg::kernels
