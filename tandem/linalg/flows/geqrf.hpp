// tandem/linalg/flows/geqrf.hpp: QR factorisation of a tiled matrix of any shape.
#pragma once

#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// The shape of T, the triangular factors of Q's block reflectors that geqrf computes for an A of shape `a`. Tile (i,
/// k) has `ib` rows (LAPACK's inner block size, at most 32) and the columns of A's tile; tiles above the diagonal are
/// not used. T is distributed as A is.
TileShape geqrf_factors_shape(const TileShape& a, std::size_t ib = 32);

/// Submits A = Q R for general m x n A, wide or tall. R replaces the upper triangle (trapezoid) of A, and the
/// reflectors of Q replace the elements below the diagonal; `t`, of geqrf_factors_shape, is overwritten. R's diagonal
/// is real. Q is a product by tiles, so that our unmqr can apply it and LAPACK's cannot. Tasks: on mt x nt tiles
/// min(mt, nt) steps, step k has one geqrt, nt - k - 1 unmqr, mt - k - 1 tpqrt and (mt - k - 1) (nt - k - 1) tpmqrt,
/// prioritised by the longest path to the end (QrPriorities). UsageError: shapes that do not fit.
template <Scalar T>
void submit_geqrf(Runtime& rt, TiledData<T>& a, TiledData<T>& t);

/// Factorises and waits.
template <Scalar T>
void geqrf(Runtime& rt, TiledData<T>& a, TiledData<T>& t) {
  submit_geqrf(rt, a, t);
  rt.wait();
}

}  // namespace tandem::linalg
