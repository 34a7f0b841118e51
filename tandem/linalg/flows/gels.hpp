// tandem/linalg/flows/gels.hpp: least squares and minimum norm by QR.
#pragma once

#include "tandem/linalg/flows/geqrf.hpp"
#include "tandem/linalg/flows/unmqr.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// Submits the solution with the factors that geqrf left in `a`, m x n with m >= n and of full rank, and `t`. B is m x
/// nrhs, general, of A's tile size, and holds both sides of the system, as LAPACK's does:
///   no_trans    min ||B - A X||: rows [0, n) of B become X, and the norm of the rows below is that of the column's residual;
///   conj_trans  A^H X = B for the first n rows of B; all of B becomes X, the solution of least norm. In real types
///   trans
///               equals it.
/// A wide system A X = B is the second form, for A^H. A rank below n gives infinities, NaNs or very large numbers, as
/// zeros on the diagonal do in the BLAS's trsm. UsageError: shapes that do not fit.
template <Scalar T>
void submit_geqrs(Runtime& rt, Op op, const TiledData<T>& a, const TiledData<T>& t, TiledData<T>& b);

/// Submits the factorisation and the solution. The solution starts on finished tiles while the factorisation goes on.
template <Scalar T>
void submit_gels(Runtime& rt, Op op, TiledData<T>& a, TiledData<T>& t, TiledData<T>& b) {
  submit_geqrf(rt, a, t);
  submit_geqrs(rt, op, a, t, b);
}

/// Factorises, solves and waits.
template <Scalar T>
void gels(Runtime& rt, Op op, TiledData<T>& a, TiledData<T>& t, TiledData<T>& b) {
  submit_gels(rt, op, a, t, b);
  rt.wait();
}

}  // namespace tandem::linalg
