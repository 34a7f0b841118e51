// tandem/linalg/flows/laswp.hpp: the row interchanges of an LU factorisation on a tiled matrix.
#pragma once

#include "tandem/linalg/flows/info.hpp"
#include "tandem/linalg/tiled_data.hpp"
#include "tandem/linalg/tiled_pivots.hpp"

namespace tandem::linalg {

/// Submits B := P B for the P of P A = L U; B is general, with A's rows and tile size. With an `after` that has failed
/// the tasks do nothing. UsageError: shapes that do not fit, or pivots without values.
template <Scalar T>
void submit_laswp(Runtime& rt, const TiledPivots& pivots, TiledData<T>& b, const Info* after = nullptr);

namespace internal {

/// A panel whose interchanges are applied, the column, and the priority.
struct PanelColumn {
  std::size_t panel = 0;
  std::size_t column = 0;  ///< a tile column of any matrix with the rows of the factorised one
  int priority = 0;
};

/// Submits the interchanges of one panel on one tile column: for each tile below the panel's first a task that
/// exchanges rows with it (the rows are known only at run time and may be none), then a task for the interchanges
/// within the first tile.
template <Scalar T>
void submit_interchanges(Runtime& rt, const TiledPivots& pivots, PanelColumn where, TiledData<T>& a, const Info* info);

}  // namespace internal

}  // namespace tandem::linalg
