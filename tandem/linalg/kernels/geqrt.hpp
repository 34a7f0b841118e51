// tandem/linalg/kernels/geqrt.hpp: QR factorisation of one tile.
#pragma once

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// A = Q R for any m x n (LAPACK's geqrt). R replaces the upper triangle or trapezoid of A, and the reflectors of Q
/// replace the elements below the diagonal. They come in blocks of ib = the rows of `t`, at most `block_reflector_max`;
/// columns [p, p + ib) of `t` hold the upper triangular factor of the block whose first column is p, with zeros below
/// its diagonal; columns from min(m, n) on are not changed. R has a real diagonal. Sequential; allocates nothing;
/// norm-wise backward stable for any A.
template <Scalar T>
void geqrt(MatrixView<T> a, MatrixView<T> t);

}  // namespace tandem::linalg::kernels
