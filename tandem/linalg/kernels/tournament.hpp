// tandem/linalg/kernels/tournament.hpp: the matches of a tournament in which rows of a panel compete to be its pivots.
#pragma once

#include <cstddef>
#include <span>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// Rows of a panel, with their values before any elimination, and their places in the panel.
template <class Element, class Index>
struct Candidates {
  MatrixView<Element> values;  ///< one row of the panel in each row
  std::span<Index> rows;       ///< their places in the panel
};

/// Memory of a match, without content.
template <Scalar T>
struct MatchSpace {
  MatrixView<T> values;             ///< of at least all candidates' rows, and their columns
  std::span<std::size_t> rows;      ///< of at least all candidates
  std::span<std::size_t> pivots;    ///< of at least min(all candidates, their columns)
};

/// The rows of a tile as candidates, which need no list: they are `first`, `first` + 1, ... of the panel.
template <Scalar T>
struct TileRows {
  MatrixView<const T> values;
  std::size_t first = 0;
};

/// Gaussian elimination with partial pivoting of the two tiles, one on the other, finds their `winners.rows.size()`
/// best pivot rows, in the order of elimination: a leaf of the tree (Grigori, Demmel, Xiang: CALU: a communication
/// optimal LU factorization algorithm, SIAM J. Matrix Anal. Appl. 32(4), 2011, section 2). The second tile may be
/// empty. Sequential, allocates nothing.
template <Scalar T>
void play_first_match(const TileRows<T>& a, const TileRows<T>& b, const Candidates<T, std::size_t>& winners,
                      const MatchSpace<T>& space);

/// Like `play_first_match` for two sets of winners: an inner node. The winners replace `a`.
template <Scalar T>
void play_match(const Candidates<T, std::size_t>& a, const Candidates<const T, const std::size_t>& b,
                const MatchSpace<T>& space);

}  // namespace tandem::linalg::kernels
