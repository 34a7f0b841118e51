// tandem/linalg/flows/scale.hpp: A := beta A, for products with an inner dimension of zero. Private to the flows.
#pragma once

#include "tandem/api/codelet.hpp"
#include "tandem/linalg/kernels/laset.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg::internal {

/// Submits A := beta A on all tiles that have elements in `uplo`. With beta = 0 A is not read.
template <Scalar T>
void submit_scale(Runtime& rt, Uplo uplo, T beta, TiledData<T>& a) {
  static const Codelet scale("scale", [](T factor, MatrixView<T> tile) {
    if (factor == T(0)) return kernels::laset(Uplo::general, T(0), T(0), tile);
    for (std::size_t j = 0; j < tile.cols; ++j)
      for (std::size_t i = 0; i < tile.rows; ++i) tile(i, j) = multiply(factor, tile(i, j));
  });
  for (std::size_t j = 0; j < a.col_tiles(); ++j) {
    for (std::size_t i = 0; i < a.row_tiles(); ++i) {
      const bool inside = uplo == Uplo::general || (uplo == Uplo::lower ? i >= j : i <= j);
      if (inside && a.stores(i, j)) rt.submit(scale, beta, read_write(a(i, j)));
    }
  }
}

}  // namespace tandem::linalg::internal
