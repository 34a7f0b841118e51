// tandem/linalg/kernels/potrf.hpp: Cholesky factorisation of one tile.
#pragma once

#include <cstddef>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// A = L L^H (lower) or A = U^H U (upper); the factor replaces that triangle of A, which is n x n, and the other
/// triangle is neither read nor written. Returns LAPACK's info: 0, or k when the leading minor of order k is not
/// positive definite (or is NaN); then the first k - 1 rows and columns of the factor are done. Sequential, allocates
/// nothing.
template <Scalar T>
std::size_t potrf(Uplo uplo, MatrixView<T> a);

}  // namespace tandem::linalg::kernels
