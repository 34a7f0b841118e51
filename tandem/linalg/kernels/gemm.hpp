// tandem/linalg/kernels/gemm.hpp: C := alpha op(A) op(B) + beta C on one tile.
#pragma once

#include <type_traits>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// C := alpha op_a(A) op_b(B) + beta C, with op_a(A) m x k, op_b(B) k x n, C m x n. With beta = 0 C is not read.
/// Sequential; safe to call from any number of threads on different C.
template <Scalar T>
void gemm(Op op_a, Op op_b, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          std::type_identity_t<MatrixView<const T>> b, std::type_identity_t<T> beta, MatrixView<T> c);

}  // namespace tandem::linalg::kernels
