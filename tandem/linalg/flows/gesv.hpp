// tandem/linalg/flows/gesv.hpp: solving general systems: factorising and solving in one flow.
#pragma once

#include "tandem/linalg/flows/info.hpp"
#include "tandem/linalg/tiled_data.hpp"
#include "tandem/linalg/tiled_pivots.hpp"

namespace tandem::linalg {

/// Submits the factorisation of A, square and general, with tournament pivoting (getrf), and the solution of A X = B; X
/// replaces B, which is general and has A's tile size. The solve starts on tiles that are final while the factorisation
/// goes on. When A is singular, `info` says so and B's content is undefined. UsageError: shapes that do not fit.
template <Scalar T>
void submit_gesv(Runtime& rt, TiledData<T>& a, TiledPivots& pivots, TiledData<T>& b, Info& info);

/// Factorises, solves and waits. Returns getrf's info.
template <Scalar T>
std::size_t gesv(Runtime& rt, TiledData<T>& a, TiledPivots& pivots, TiledData<T>& b);

/// Like `submit_gesv`, without pivoting (getrf_nopiv), for matrices that need none.
template <Scalar T>
void submit_gesv_nopiv(Runtime& rt, TiledData<T>& a, TiledData<T>& b, Info& info);

/// Factorises, solves and waits. Returns getrf_nopiv's info.
template <Scalar T>
std::size_t gesv_nopiv(Runtime& rt, TiledData<T>& a, TiledData<T>& b);

}  // namespace tandem::linalg
