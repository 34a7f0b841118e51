// tandem/linalg/flows/getrs.hpp: solving with the factors of an LU factorisation.
#pragma once

#include "tandem/linalg/flows/info.hpp"
#include "tandem/linalg/tiled_data.hpp"
#include "tandem/linalg/tiled_pivots.hpp"

namespace tandem::linalg {

/// Submits A X = B for the factors of a square A that getrf left, and its pivots; X replaces B, which is general and
/// has A's tile size. With an `after` that has failed nothing is done. UsageError: shapes that do not fit.
template <Scalar T>
void submit_getrs(Runtime& rt, const TiledData<T>& factors, const TiledPivots& pivots, TiledData<T>& b,
                  const Info* after = nullptr);

/// Solves and waits.
template <Scalar T>
void getrs(Runtime& rt, const TiledData<T>& factors, const TiledPivots& pivots, TiledData<T>& b);

/// Like `submit_getrs`, for the factors that getrf_nopiv left.
template <Scalar T>
void submit_getrs_nopiv(Runtime& rt, const TiledData<T>& factors, TiledData<T>& b, const Info* after = nullptr);

/// Solves and waits.
template <Scalar T>
void getrs_nopiv(Runtime& rt, const TiledData<T>& factors, TiledData<T>& b);

}  // namespace tandem::linalg
