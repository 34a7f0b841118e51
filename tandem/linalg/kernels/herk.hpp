// tandem/linalg/kernels/herk.hpp: symmetric and Hermitian rank-k updates of one tile.
#pragma once

#include <type_traits>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// C := alpha A A^H + beta C (no_trans) or C := alpha A^H A + beta C (conj_trans) on the `uplo` triangle of C, which is
/// n x n; the other triangle is neither read nor written. Real alpha and beta, and a real diagonal on return. For real
/// T this is syrk (and Op::trans is as good as conj_trans). With beta = 0 C is not read. Sequential, allocates nothing.
template <Scalar T>
void herk(Uplo uplo, Op op, Real<T> alpha, std::type_identity_t<MatrixView<const T>> a, Real<T> beta, MatrixView<T> c);

/// C := alpha A A^T + beta C (no_trans) or C := alpha A^T A + beta C (trans), otherwise as herk.
template <Scalar T>
void syrk(Uplo uplo, Op op, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          std::type_identity_t<T> beta, MatrixView<T> c);

}  // namespace tandem::linalg::kernels
