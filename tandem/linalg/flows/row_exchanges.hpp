// tandem/linalg/flows/row_exchanges.hpp: from the pivot rows of a panel to exchanges of rows, tile by tile. Private to
// the flows.
//
// Interchanges in LAPACK's order, rows t and r(t) for t = 0, 1, ..., cannot be done tile by tile: an interchange within
// the first tile may move a row that an earlier or later one takes out of it. Their product can: a row that leaves the
// first tile goes to where a pivot row has come from (pivot rows stay where they are put, so nothing else can come
// there), so that
//
//   P = (a permutation within the first tile) (exchanges of a row of the first tile and a row of another; no two share
//   a row).
//
// The exchanges with different tiles are independent of each other.
#pragma once

#include <cstddef>
#include <span>

namespace tandem::linalg::internal {

/// Interchanges of rows t and interchanges[t], t = 0, 1, ..., that bring row pivot_rows[t] to position t. The rows
/// differ.
void interchanges_of(std::span<const std::size_t> pivot_rows, std::span<std::size_t> interchanges) noexcept;

/// The two factors of P for a first tile of as many rows as `partners` and `within` have: row t of it is exchanged with
/// row partners[t], itself if with none, and then for t = 0, 1, ... rows t and within[t] of the tile.
void split_interchanges(std::span<const std::size_t> interchanges, std::span<std::size_t> partners,
                        std::span<std::size_t> within);

}  // namespace tandem::linalg::internal
