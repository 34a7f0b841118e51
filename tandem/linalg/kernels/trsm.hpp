// tandem/linalg/kernels/trsm.hpp: triangular solve with many right-hand sides on one tile, nearly as fast as gemm.
#pragma once

#include <type_traits>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// Solves op(A) X = alpha B (left) or X op(A) = alpha B (right); X replaces B. A is triangular of order B.rows or
/// B.cols; only its `uplo` triangle is read, and its diagonal only for Diag::non_unit. A zero on the diagonal gives
/// infinities, as in the BLAS. Sequential; allocates nothing; backward stable as substitution is (no explicit inverse
/// of a block).
template <Scalar T>
void trsm(Side side, Uplo uplo, Op op, Diag diag, std::type_identity_t<T> alpha,
          std::type_identity_t<MatrixView<const T>> a, MatrixView<T> b);

}  // namespace tandem::linalg::kernels
