// tandem/linalg/flows/posv.hpp: solving with a Cholesky factor, and factorising and solving in one flow.
#pragma once

#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/info.hpp"
#include "tandem/linalg/flows/potrf.hpp"
#include "tandem/linalg/flows/trsm.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// Submits A X = B for the factor of A that potrf left in the `uplo` triangle; X replaces B, which is general and has
/// A's tile size. With an `after` that has failed the tasks do nothing. UsageError: shapes that do not fit.
template <Scalar T>
void submit_potrs(Runtime& rt, Uplo uplo, const TiledData<T>& factor, TiledData<T>& b, const Info* after = nullptr) {
  if (uplo == Uplo::lower) {
    submit_trsm(rt, Side::left, uplo, Op::no_trans, Diag::non_unit, T(1), factor, b, after);    // L Y = B
    submit_trsm(rt, Side::left, uplo, Op::conj_trans, Diag::non_unit, T(1), factor, b, after);  // L^H X = Y
  } else {
    submit_trsm(rt, Side::left, uplo, Op::conj_trans, Diag::non_unit, T(1), factor, b, after);  // U^H Y = B
    submit_trsm(rt, Side::left, uplo, Op::no_trans, Diag::non_unit, T(1), factor, b, after);    // U X = Y
  }
}

/// Solves and waits.
template <Scalar T>
void potrs(Runtime& rt, Uplo uplo, const TiledData<T>& factor, TiledData<T>& b) {
  submit_potrs(rt, uplo, factor, b);
  rt.wait();
}

/// Submits the factorisation of A, positive definite, and the solution of A X = B. The solve starts on finished tiles
/// while the factorisation goes on. When A is not positive definite, `info` says so and B's content is undefined.
/// UsageError: shapes that do not fit; then nothing is submitted.
template <Scalar T>
void submit_posv(Runtime& rt, Uplo uplo, TiledData<T>& a, TiledData<T>& b, Info& info) {
  internal::require_right_side("posv", a, b);
  submit_potrf(rt, uplo, a, info);
  submit_potrs(rt, uplo, a, b, &info);
}

/// Factorises, solves and waits. Returns potrf's info.
template <Scalar T>
std::size_t posv(Runtime& rt, Uplo uplo, TiledData<T>& a, TiledData<T>& b) {
  Info info;
  submit_posv(rt, uplo, a, b, info);
  rt.wait();
  return info.value();
}

}  // namespace tandem::linalg
