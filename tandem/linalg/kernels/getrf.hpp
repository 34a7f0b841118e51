// tandem/linalg/kernels/getrf.hpp: LU factorisation of one tile, or of a column of them, with partial pivoting.
#pragma once

#include <cstddef>
#include <span>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// P A = L U for A m x n of any shape; L, unit lower trapezoidal, and U, upper trapezoidal, replace A. P A is what
/// `laswp(interchanges, A)` leaves, with min(m, n) interchanges, all within A also when A holds NaNs. Returns
/// LAPACK's info: 0, or k when the k-th pivot is the first that is exactly zero; the factorisation is complete all the
/// same. Sequential, allocates nothing.
template <Scalar T>
std::size_t getrf(MatrixView<T> a, std::span<std::size_t> interchanges);

}  // namespace tandem::linalg::kernels
