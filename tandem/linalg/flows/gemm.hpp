// tandem/linalg/flows/gemm.hpp: C := alpha op(A) op(B) + beta C on tiled matrices.
#pragma once

#include <type_traits>

#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// Submits C := alpha op_a(A) op_b(B) + beta C; all general, of equal tile size, op_a(A) m x k, op_b(B) k x n, C m x n.
/// UsageError: shapes that do not fit.
template <Scalar T>
void submit_gemm(Runtime& rt, Op op_a, Op op_b, std::type_identity_t<T> alpha, const TiledData<T>& a,
                 const TiledData<T>& b, std::type_identity_t<T> beta, TiledData<T>& c);

/// Multiplies and waits.
template <Scalar T>
void gemm(Runtime& rt, Op op_a, Op op_b, std::type_identity_t<T> alpha, const TiledData<T>& a, const TiledData<T>& b,
          std::type_identity_t<T> beta, TiledData<T>& c) {
  submit_gemm(rt, op_a, op_b, alpha, a, b, beta, c);
  rt.wait();
}

}  // namespace tandem::linalg
