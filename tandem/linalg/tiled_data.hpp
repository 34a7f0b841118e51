// tandem/linalg/tiled_data.hpp: a tile matrix registered with a runtime, one handle per tile.
#pragma once

#include <complex>
#include <optional>
#include <string>
#include <vector>

#include "tandem/api/data.hpp"
#include "tandem/api/runtime.hpp"
#include "tandem/linalg/tile_matrix.hpp"

namespace tandem::linalg {

/// The data of all stored tiles of a matrix, registered in column-major order under names such as `A(3,1)`; tiles of
/// the runtime (`TileShape::in_runtime`) are registered at their first use. Flows take it by reference. Belongs to the
/// submitting thread. The matrix and the runtime outlive it, and its destructor waits for the tasks that use its tiles.
/// The first one restricts the BLAS to one thread per call.
template <Scalar T>
class TiledData {
 public:
  /// Registers all stored tiles of `matrix`, each owned as its distribution says. On several ranks every rank calls it.
  TiledData(Runtime& rt, const std::string& name, TileMatrix<T>& matrix);

  const TileMatrix<T>& matrix() const noexcept { return *matrix_; }  ///< the matrix of these tiles
  TileMatrix<T>& matrix() noexcept { return *matrix_; }              ///< the matrix of these tiles
  std::size_t row_tiles() const noexcept { return matrix_->row_tiles(); }  ///< number of tile rows
  std::size_t col_tiles() const noexcept { return matrix_->col_tiles(); }  ///< number of tile columns
  /// Whether tile (i, j) is stored: in a triangle, not all are.
  bool stores(std::size_t i, std::size_t j) const noexcept { return matrix_->stores(i, j); }

  /// The data of tile (i, j), which must be stored.
  const Data<Matrix<T>>& operator()(std::size_t i, std::size_t j) const {
    TANDEM_DEBUG_ASSERT(stores(i, j));
    if (made_when_used_) [[unlikely]] return (*made_when_used_)(i, j);
    return tiles_[i + j * row_tiles()];
  }

 private:
  DataOptions place(std::size_t i, std::size_t j) const;

  TileMatrix<T>* matrix_;
  mutable std::optional<Tiles<T>> made_when_used_;  ///< of the runtime's tiles
  std::vector<Data<Matrix<T>>> tiles_;  ///< other tiles: (i, j) at i + j * row_tiles(); empty where none is stored
};

extern template class TiledData<float>;
extern template class TiledData<double>;
extern template class TiledData<std::complex<float>>;
extern template class TiledData<std::complex<double>>;

}  // namespace tandem::linalg
