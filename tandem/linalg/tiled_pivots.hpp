// tandem/linalg/tiled_pivots.hpp: the row interchanges of a tiled LU factorisation, as data.
#pragma once

#include <cstddef>
#include <vector>

#include "tandem/api/data.hpp"
#include "tandem/api/runtime.hpp"
#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// The pivots of P A = L U, panel by panel, for an A of given dimensions and tiles. Panel k is tile column k from tile
/// row k on; its rows are counted from 0. They have no values until getrf has been submitted; then getrs may be
/// submitted any number of times. On several ranks a panel's pivots are on the rank of its diagonal tile. Belongs to
/// the submitting thread; is destroyed before the runtime.
class TiledPivots {
 public:
  /// For A, and matrices with its dimensions and tiles.
  template <Scalar T>
  TiledPivots(Runtime& rt, const TiledData<T>& a) : TiledPivots(rt, a.matrix().shape()) {}
  /// For matrices of this shape.
  TiledPivots(Runtime& rt, const TileShape& shape);

  /// The shape of the factorised matrix.
  const TileShape& shape() const noexcept { return shape_; }
  /// min(tile rows, tile columns)
  std::size_t panels() const noexcept { return interchanges_.size(); }

  /// LAPACK's sequence: exchange rows t and interchanges(k)[t] of the panel, for t = 0, 1, ....
  const Data<Vector<std::size_t>>& interchanges(std::size_t k) const noexcept { return interchanges_[k]; }

  /// The permutation in the form that tasks apply: for a first tile of r rows, r partners, then r interchanges within
  /// it (flows/row_exchanges.hpp).
  const Data<Vector<std::size_t>>& exchanges(std::size_t k) const noexcept { return exchanges_[k]; }

  /// LAPACK's ipiv: row i was exchanged with row ipiv[i], i = 1, 2, ..., min(m, n), counted from 1. Waits for the
  /// pivots.
  std::vector<std::size_t> ipiv(Runtime& rt) const;

 private:
  TileShape shape_;
  std::vector<Data<Vector<std::size_t>>> interchanges_;
  std::vector<Data<Vector<std::size_t>>> exchanges_;
};

}  // namespace tandem::linalg
