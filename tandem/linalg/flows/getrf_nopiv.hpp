// tandem/linalg/flows/getrf_nopiv.hpp: LU factorisation of a tiled matrix without pivoting.
#pragma once

#include "tandem/linalg/flows/info.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// Submits A = L U; L, unit lower trapezoidal, and U, upper trapezoidal, replace A, which is m x n and general. Stable
/// for matrices that need no pivoting, such as diagonally dominant ones; getrf takes any. `info` lives until the flow
/// has been waited for and says then which pivot was the first that is exactly zero; what follows it is left undone.
/// Tasks, of nt x nt tiles: nt getrf, nt (nt - 1) trsm, nt (nt - 1) (2 nt - 1) / 6 gemm, prioritised by the longest
/// path to the end (LuPriorities). UsageError: A not general.
template <Scalar T>
void submit_getrf_nopiv(Runtime& rt, TiledData<T>& a, Info& info);

/// Factorises and waits. Returns LAPACK's info: 0, or k when the k-th pivot is the first that is exactly zero.
template <Scalar T>
std::size_t getrf_nopiv(Runtime& rt, TiledData<T>& a);

}  // namespace tandem::linalg
