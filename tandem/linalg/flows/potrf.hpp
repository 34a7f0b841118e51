// tandem/linalg/flows/potrf.hpp: Cholesky factorisation of a tiled matrix.
#pragma once

#include "tandem/linalg/flows/info.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// Submits A = L L^H (lower) or A = U^H U (upper); the factor replaces that triangle of A, which is square and stores
/// it. The other triangle is neither read nor written. `info` lives until the program has waited for the flow; it says
/// then whether A was positive definite. Tasks: nt potrf, nt (nt - 1) / 2 trsm and herk, nt (nt - 1) (nt - 2) / 6 gemm,
/// prioritised by the longest path to the end (CholeskyPriorities). UsageError: A not square or without that triangle.
template <Scalar T>
void submit_potrf(Runtime& rt, Uplo uplo, TiledData<T>& a, Info& info);

/// Factorises and waits. Returns LAPACK's info: 0, or k when the leading minor of order k is not positive definite.
template <Scalar T>
std::size_t potrf(Runtime& rt, Uplo uplo, TiledData<T>& a);

}  // namespace tandem::linalg
