// tandem/linalg/tiled_pivots.cpp: data for each panel.
#include "tandem/linalg/tiled_pivots.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace tandem::linalg {

TiledPivots::TiledPivots(Runtime& rt, const TileShape& shape) : shape_(shape) {
  TANDEM_ASSERT(shape.tile > 0);
  const std::size_t order = std::min(shape.rows, shape.cols);
  for (std::size_t first = 0; first < order; first += shape.tile) {
    const std::size_t k = first / shape.tile;
    DataOptions place;
    if (shape.distribution.several()) place.owner = shape.distribution.owner(k, k);
    interchanges_.push_back(
        rt.vector<std::size_t>(fmt::format("interchanges({})", k), std::min(shape.tile, order - first), place));
    exchanges_.push_back(
        rt.vector<std::size_t>(fmt::format("exchanges({})", k), 2 * std::min(shape.tile, shape.rows - first), place));
  }
}

std::vector<std::size_t> TiledPivots::ipiv(Runtime& rt) const {
  std::vector<std::size_t> result;
  for (std::size_t k = 0; k < panels(); ++k) {
    const std::size_t first_row = k * shape_.tile + 1;
    auto of_panel = rt.acquire(read(interchanges_[k]));
    for (const std::size_t row : *of_panel) result.push_back(first_row + row);
  }
  return result;
}

}  // namespace tandem::linalg
