// tandem/linalg/flows/lacpy.hpp: copy a tiled matrix, or a triangle of it.
#pragma once

#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// Submits B := A on the `uplo` part: whole tiles beside the diagonal, that triangle of diagonal ones. Dimensions and
/// tile sizes are equal and both store that part. A tile is copied by the rank that owns it in B; where distributions
/// differ, A's travels there, so that this is also how a matrix is distributed anew. UsageError: shapes that do not
/// fit.
template <Scalar T>
void submit_lacpy(Runtime& rt, Uplo uplo, const TiledData<T>& a, TiledData<T>& b);

/// Copies and waits.
template <Scalar T>
void lacpy(Runtime& rt, Uplo uplo, const TiledData<T>& a, TiledData<T>& b) {
  submit_lacpy(rt, uplo, a, b);
  rt.wait();
}

}  // namespace tandem::linalg
