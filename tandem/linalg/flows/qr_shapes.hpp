// tandem/linalg/flows/qr_shapes.hpp: what the flows of QR require of their matrices. Private to the flows.
#pragma once

#include "tandem/linalg/flows/geqrf.hpp"
#include "tandem/linalg/kernels/block_reflector.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg::internal {

/// Whether `t` is of geqrf_factors_shape for `a`, with any inner block size.
template <Scalar T>
bool has_factors_shape(const TiledData<T>& t, const TiledData<T>& a) {
  const TileShape& shape = t.matrix().shape();
  const std::size_t ib = t.matrix().tile_height();
  if (ib > block_reflector_max) return false;
  const TileShape wanted = geqrf_factors_shape(a.matrix().shape(), ib);
  return shape.uplo == Uplo::general && shape.rows == wanted.rows && shape.cols == wanted.cols &&
         shape.tile == wanted.tile;
}

}  // namespace tandem::linalg::internal
