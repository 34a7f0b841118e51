// tandem/linalg/kernels/lacpy.hpp: copy a tile, or one triangle of it.
#pragma once

#include <type_traits>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// B := A on the `uplo` part, diagonal included; the rest of B is not written. A and B have the same shape (m x n, also
/// trapezoidal) and do not overlap.
template <Scalar T>
void lacpy(Uplo uplo, std::type_identity_t<MatrixView<const T>> a, MatrixView<T> b);

}  // namespace tandem::linalg::kernels
