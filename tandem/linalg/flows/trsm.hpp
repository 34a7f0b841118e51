// tandem/linalg/flows/trsm.hpp: triangular solve with many right-hand sides on tiled matrices.
#pragma once

#include <type_traits>

#include "tandem/linalg/flows/info.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// Submits op(A) X = alpha B (left) or X op(A) = alpha B (right); X replaces B, which is general. A is triangular,
/// stores its `uplo` triangle and has B's tile size. With an `after` (a factorisation's) that has failed the tasks do
/// nothing; it lives until the program has waited for the flow. UsageError: shapes that do not fit.
template <Scalar T>
void submit_trsm(Runtime& rt, Side side, Uplo uplo, Op op, Diag diag, std::type_identity_t<T> alpha,
                 const TiledData<T>& a, TiledData<T>& b, const Info* after = nullptr);

/// Solves and waits.
template <Scalar T>
void trsm(Runtime& rt, Side side, Uplo uplo, Op op, Diag diag, std::type_identity_t<T> alpha, const TiledData<T>& a,
          TiledData<T>& b) {
  submit_trsm(rt, side, uplo, op, diag, alpha, a, b);
  rt.wait();
}

}  // namespace tandem::linalg
