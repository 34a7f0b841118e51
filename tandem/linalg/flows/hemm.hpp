// tandem/linalg/flows/hemm.hpp: C := alpha A B + beta C with A Hermitian, on tiled matrices.
#pragma once

#include <type_traits>

#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// Submits C := alpha A B + beta C, with A Hermitian (symmetric in real types) and stored, or referred to, in its
/// `uplo` triangle; B and C general; tile sizes equal. UsageError: shapes that do not fit.
template <Scalar T>
void submit_hemm(Runtime& rt, Uplo uplo, std::type_identity_t<T> alpha, const TiledData<T>& a, const TiledData<T>& b,
                 std::type_identity_t<T> beta, TiledData<T>& c);

}  // namespace tandem::linalg
