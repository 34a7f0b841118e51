// tandem/linalg/flows/row_exchanges.cpp: follows rows through interchanges.
#include "tandem/linalg/flows/row_exchanges.hpp"

#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/base/assert.hpp"

namespace tandem::linalg::internal {

void interchanges_of(std::span<const std::size_t> pivot_rows, std::span<std::size_t> interchanges) noexcept {
  for (std::size_t t = 0; t < pivot_rows.size(); ++t) {
    std::size_t position = pivot_rows[t];
    for (std::size_t before = 0; before < t; ++before) {
      if (position == before) position = interchanges[before];
      else if (position == interchanges[before]) position = before;
    }
    TANDEM_DEBUG_ASSERT(position >= t);
    interchanges[t] = position;
  }
}

void split_interchanges(std::span<const std::size_t> interchanges, std::span<std::size_t> partners,
                        std::span<std::size_t> within) {
  const std::size_t rows = partners.size();
  // The row at each position after all interchanges, for the tile and for the positions outside it that change.
  std::vector<std::size_t> inside(rows);
  std::iota(inside.begin(), inside.end(), std::size_t(0));
  std::unordered_map<std::size_t, std::size_t> outside;
  for (std::size_t t = 0; t < interchanges.size(); ++t) {
    const std::size_t other = interchanges[t];
    std::swap(inside[t], other < rows ? inside[other] : outside.try_emplace(other, other).first->second);
  }
  std::iota(partners.begin(), partners.end(), std::size_t(0));
  for (const auto& [position, row] : outside) {
    TANDEM_ASSERT(row < rows);
    partners[row] = position;
  }
  // After the exchanges, a row from outside is at the old position of the row that replaced it.
  for (std::size_t& row : inside)
    if (row >= rows) row = outside.at(row);
  interchanges_of(inside, within);
}

}  // namespace tandem::linalg::internal
