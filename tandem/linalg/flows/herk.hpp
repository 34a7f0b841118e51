// tandem/linalg/flows/herk.hpp: symmetric and Hermitian rank-k updates of tiled matrices.
#pragma once

#include <type_traits>

#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// Submits C := alpha A A^H + beta C (no_trans) or C := alpha A^H A + beta C (conj_trans) on the `uplo` triangle of C,
/// which stores it; A is general and has C's tile size. For real T this is syrk. UsageError: shapes that do not fit.
template <Scalar T>
void submit_herk(Runtime& rt, Uplo uplo, Op op, Real<T> alpha, const TiledData<T>& a, Real<T> beta, TiledData<T>& c);

/// Submits C := alpha A A^T + beta C (no_trans) or C := alpha A^T A + beta C (trans), otherwise as herk.
template <Scalar T>
void submit_syrk(Runtime& rt, Uplo uplo, Op op, std::type_identity_t<T> alpha, const TiledData<T>& a,
                 std::type_identity_t<T> beta, TiledData<T>& c);

/// Updates and waits.
template <Scalar T>
void herk(Runtime& rt, Uplo uplo, Op op, Real<T> alpha, const TiledData<T>& a, Real<T> beta, TiledData<T>& c) {
  submit_herk(rt, uplo, op, alpha, a, beta, c);
  rt.wait();
}
/// Updates and waits.
template <Scalar T>
void syrk(Runtime& rt, Uplo uplo, Op op, std::type_identity_t<T> alpha, const TiledData<T>& a,
          std::type_identity_t<T> beta, TiledData<T>& c) {
  submit_syrk(rt, uplo, op, alpha, a, beta, c);
  rt.wait();
}

}  // namespace tandem::linalg
