// tandem/linalg/kernels/laset.hpp: set a tile, or one triangle of it, to constants.
#pragma once

#include <type_traits>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// a_ij := off_diagonal on the strict `uplo` part (everywhere off the diagonal for general), a_ii := diagonal.
template <Scalar T>
void laset(Uplo uplo, std::type_identity_t<T> off_diagonal, std::type_identity_t<T> diagonal, MatrixView<T> a);

}  // namespace tandem::linalg::kernels
