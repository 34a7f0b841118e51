// tandem/linalg/flows/norms.hpp: norms of tiled matrices, for residuals.
#pragma once

#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// ||A||_1 of a general matrix: the largest sum of moduli of a column. Submits and waits. The result is the same in every
/// schedule.
template <Scalar T>
Real<T> norm_one(Runtime& rt, const TiledData<T>& a);

/// ||A||_1 of a Hermitian (in real types symmetric) matrix of which the `uplo` triangle is read. Submits and waits.
template <Scalar T>
Real<T> norm_one_hermitian(Runtime& rt, Uplo uplo, const TiledData<T>& a);

/// The largest modulus of an element of the stored tiles. Submits and waits.
template <Scalar T>
Real<T> norm_max(Runtime& rt, const TiledData<T>& a);

}  // namespace tandem::linalg
