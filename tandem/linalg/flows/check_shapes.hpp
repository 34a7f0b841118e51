// tandem/linalg/flows/check_shapes.hpp: what flows ask of their matrices, as errors that say so. Private to the flows.
#pragma once

#include "tandem/linalg/tiled_data.hpp"
#include "tandem/runtime/usage_error.hpp"

namespace tandem::linalg::internal {

/// Throws UsageError with `what` unless `holds`.
inline void require(bool holds, const char* what) {
  if (!holds) throw UsageError(what);
}

/// Whether all tiles that have elements of the `uplo` triangle are there.
template <Scalar T>
bool has_triangle(const TiledData<T>& a, Uplo uplo) noexcept {
  const TileMatrix<T>& m = a.matrix();
  return m.rows() == m.cols() && (m.uplo() == Uplo::general || m.uplo() == uplo) && uplo != Uplo::general;
}

template <Scalar T>
bool is_general(const TiledData<T>& a) noexcept {
  return a.matrix().uplo() == Uplo::general;
}

}  // namespace tandem::linalg::internal
