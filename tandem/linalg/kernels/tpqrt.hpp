// tandem/linalg/kernels/tpqrt.hpp: QR factorisation of a triangle on top of a tile.
#pragma once

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// [R; B] = Q [R'; 0] for an upper triangular R, n x n, and any B, m x n (LAPACK's tpqrt with L = 0, also called
/// tsqrt). R is the upper triangle of the first n rows of `a`; R' replaces it; elements below its diagonal are neither
/// read nor written. B is replaced by its part of the reflectors, and their triangular factors go to `t`, n columns, as
/// geqrt's do. Sequential; allocates nothing.
template <Scalar T>
void tpqrt(MatrixView<T> a, MatrixView<T> b, MatrixView<T> t);

}  // namespace tandem::linalg::kernels
