// tandem/linalg/flows/residual_work.hpp: work matrices of residuals. Private to the flows.
#pragma once

#include <cstddef>

#include "tandem/linalg/generators.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg::internal {

/// A tiled matrix with the shape and distribution of another one, and its data. Uninitialised.
template <Scalar T>
struct Work {
  Work(Runtime& rt, const char* name, std::size_t rows, std::size_t cols, const TileMatrix<T>& like)
      : matrix({.rows = rows, .cols = cols, .tile = like.tile_size(), .distribution = like.distribution(), .rank = rt.rank()}),
        data(rt, name, matrix) {}
  TileMatrix<T> matrix;
  TiledData<T> data;
};

/// Number of random columns that stand for all vectors; fewer if a tile has fewer.
inline constexpr std::size_t probe_columns = 8;
inline constexpr RandomGeneral probe{.seed = 0x9e37};

}  // namespace tandem::linalg::internal
