// tandem/linalg/kernels/hemm.hpp: C := alpha A B + beta C on one tile, with A Hermitian.
#pragma once

#include <type_traits>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// C := alpha A B + beta C with A Hermitian (symmetric in real types), m x m, of which only the `uplo` triangle is
/// read; B and C are m x n. With beta = 0 C is not read. Sequential.
template <Scalar T>
void hemm(Uplo uplo, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          std::type_identity_t<MatrixView<const T>> b, std::type_identity_t<T> beta, MatrixView<T> c);

}  // namespace tandem::linalg::kernels
