// tandem/linalg/flows/qr_priorities.cpp: the recursion, from the last step back and from the last tile of each.
#include "tandem/linalg/flows/qr_priorities.hpp"

#include <algorithm>

namespace tandem::linalg {

QrPriorities::QrPriorities(Tiles tiles) : tiles_(tiles), steps_(std::min(tiles.rows, tiles.cols)) {
  for (std::size_t k = steps_.size(); k-- > 0;) {
    steps_[k].resize((tiles.rows - k) * (tiles.cols - k));
    for (std::size_t i = tiles.rows; i-- > k;) {
      int widest = 0;  // of the tasks of this row that read the reflectors of tile (i, k)
      for (std::size_t j = tiles.cols; j-- > k;) {
        const int below = level(k, i + 1, j);
        int& own = steps_[k][(i - k) * (tiles.cols - k) + j - k];
        if (j == k) own = (i == k ? 4 : 6) + std::max(below, widest);
        else if (i == k) own = 6 + std::max(level(k, k + 1, k), below);
        else own = 12 + std::max(below, level(k + 1, i, j));
        widest = std::max(widest, own);
      }
    }
  }
}

}  // namespace tandem::linalg
