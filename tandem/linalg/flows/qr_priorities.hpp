// tandem/linalg/flows/qr_priorities.hpp: how urgent each task of a tiled QR is: the longest path from it to the end.
#pragma once

#include <cstddef>
#include <vector>

namespace tandem::linalg {

/// Bottom levels in the graph of the tiled QR factorisation of row_tiles x col_tiles tiles (geqrf.cpp), in units of
/// nb^3 / 3 operations, of which geqrt takes 4, unmqr and tpqrt 6, tpmqrt 12. A task's level is its own time and the
/// largest level of a task that waits for it:
///
///   geqrt(k)        =  4 + max( tpqrt(k, k+1), max_j unmqr(k, j) )               i, j > k
///   unmqr(k, j)     =  6 + max( tpqrt(k, k+1), tpmqrt(k, k+1, j) )
///   tpqrt(k, i)     =  6 + max( tpqrt(k, i+1), max_j tpmqrt(k, i, j) )
///   tpmqrt(k, i, j) = 12 + max( tpmqrt(k, i+1, j), the task of step k+1 that writes tile (i, j) )
///
/// The wait of tpqrt(k, k+1) for unmqr(k, j) is not for values: it overwrites R in the tile of which unmqr reads V.
/// Computed once, from the last step back, with 4 bytes and a comparison or two per task. Immutable: any thread.
class QrPriorities {
 public:
  struct Tiles {
    std::size_t rows = 0;
    std::size_t cols = 0;
  };
  explicit QrPriorities(Tiles tiles);

  int geqrt(std::size_t k) const noexcept { return level(k, k, k); }
  int unmqr(std::size_t k, std::size_t j) const noexcept { return level(k, k, j); }
  int tpqrt(std::size_t k, std::size_t i) const noexcept { return level(k, i, k); }
  int tpmqrt(std::size_t k, std::size_t i, std::size_t j) const noexcept { return level(k, i, j); }

 private:
  /// The level of the task of step k that eliminates or updates tile (i, j), with i, j >= k; 0 when there is none.
  int level(std::size_t k, std::size_t i, std::size_t j) const noexcept {
    return k < steps_.size() && i < tiles_.rows && j < tiles_.cols ? steps_[k][(i - k) * (tiles_.cols - k) + j - k] : 0;
  }

  Tiles tiles_;
  std::vector<std::vector<int>> steps_;  ///< of step k: level(k, i, j) at (i - k) * (tiles_.cols - k) + j - k
};

}  // namespace tandem::linalg
