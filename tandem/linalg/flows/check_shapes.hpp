// tandem/linalg/flows/check_shapes.hpp: what flows require of their matrices, with errors. Private to the flows.
#pragma once

#include <string>

#include "tandem/linalg/tiled_data.hpp"
#include "tandem/base/exceptions.hpp"

namespace tandem::linalg::internal {

/// Throws UsageError with `what` unless `holds`.
inline void require(bool holds, const char* what) {
  if (!holds) throw UsageError(what);
}

/// Whether all tiles with elements of the `uplo` triangle exist.
template <Scalar T>
bool has_triangle(const TiledData<T>& a, Uplo uplo) noexcept {
  const TileMatrix<T>& m = a.matrix();
  return m.rows() == m.cols() && m.has_square_tiles() && (m.uplo() == Uplo::general || m.uplo() == uplo) &&
         uplo != Uplo::general;
}

/// Whether all tiles exist, and are square.
template <Scalar T>
bool is_general(const TiledData<T>& a) noexcept {
  return a.matrix().uplo() == Uplo::general && a.matrix().has_square_tiles();
}

/// Throws UsageError unless B is a right-hand side of a system with A, for the flow called `name`.
template <Scalar T>
void require_right_side(const char* name, const TiledData<T>& a, const TiledData<T>& b) {
  const TileMatrix<T>&ma = a.matrix(), &mb = b.matrix();
  if (!is_general(b)) throw UsageError(std::string(name) + ": B has to store all its tiles");
  if (ma.rows() != mb.rows() || ma.tile_size() != mb.tile_size())
    throw UsageError(std::string(name) + ": the rows or the tile sizes of A and B differ");
}

/// Throws UsageError unless A X = B is a system of general matrices, for the flow called `name`.
template <Scalar T>
void require_system(const char* name, const TiledData<T>& a, const TiledData<T>& b) {
  if (!is_general(a) || a.matrix().rows() != a.matrix().cols())
    throw UsageError(std::string(name) + ": A has to be square and store all its tiles");
  require_right_side(name, a, b);
}

}  // namespace tandem::linalg::internal
