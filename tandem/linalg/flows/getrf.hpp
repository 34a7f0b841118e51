// tandem/linalg/flows/getrf.hpp: LU factorisation of a tiled matrix with tournament pivoting (CALU).
#pragma once

#include "tandem/linalg/flows/info.hpp"
#include "tandem/linalg/tiled_data.hpp"
#include "tandem/linalg/tiled_pivots.hpp"

namespace tandem::linalg {

/// Submits P A = L U; L, unit lower trapezoidal, and U, upper trapezoidal, replace A, which is m x n and general, and
/// `pivots`, made for A's shape, get P. The pivots of a panel are found by a tournament among its tiles (Grigori,
/// Demmel, Xiang: CALU: a communication optimal LU factorization algorithm, SIAM J. Matrix Anal. Appl. 32(4), 2011) and
/// not column by column: in practice as stable as partial pivoting, with elements of L that may somewhat exceed 1.
/// `info` lives until the flow has been waited for and says then which pivot was the first that is exactly zero: A is
/// singular, and what follows is left undone (LAPACK's getrf goes on). The tasks are the same whatever A holds.
/// UsageError: A not general, pivots of another shape.
template <Scalar T>
void submit_getrf(Runtime& rt, TiledData<T>& a, TiledPivots& pivots, Info& info);

/// Factorises and waits. Returns LAPACK's info: 0, or k when the k-th pivot is the first that is exactly zero.
template <Scalar T>
std::size_t getrf(Runtime& rt, TiledData<T>& a, TiledPivots& pivots);

}  // namespace tandem::linalg
