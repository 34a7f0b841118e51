// tandem/linalg/flows/lu_priorities.cpp: the levels, from the closed forms.
#include "tandem/linalg/flows/lu_priorities.hpp"

#include <algorithm>
#include <bit>

namespace tandem::linalg {

LuPriorities::LuPriorities(LuTiles tiles) noexcept
    : order_(std::min(tiles.rows, tiles.cols)), beyond_(tiles.rows == tiles.cols ? 0 : 3) {}

int LuPriorities::gemm(std::size_t k, std::size_t i, std::size_t j) const noexcept {
  const std::size_t last = std::min(i, j);
  const int after = i == j ? getrf(i) : beside_diagonal(last, std::max(i, j));
  return 6 * steps(k, last) + after;
}

TournamentPriorities::TournamentPriorities(LuTiles tiles) : tiles_(tiles), getrf_(std::min(tiles.rows, tiles.cols)) {
  for (std::size_t k = getrf_.size(); k-- > 0;) {
    const bool last = k + 1 == getrf_.size();
    getrf_[k] = last ? 2 + (tiles.rows == tiles.cols ? 0 : 3) : 11 + panel(k + 1);
  }
}

std::size_t TournamentPriorities::rounds(std::size_t k) const noexcept {
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::bit_width(tiles_.rows - k - 1)));
}

int TournamentPriorities::match(std::size_t k, std::size_t played) const noexcept {
  const int cost = tiles_.rows - k == 1 ? 2 : 5;
  return cost * static_cast<int>(rounds(k) - played) + getrf_[k];
}

int TournamentPriorities::row(std::size_t k, std::size_t j) const noexcept {
  const std::size_t order = getrf_.size();
  return j < order ? 9 * static_cast<int>(j - k) + panel(j) : 9 * static_cast<int>(order - 1 - k) + 3;
}

}  // namespace tandem::linalg
