// tandem/linalg/kernels/tournament.cpp: candidates are stacked and factorised; the top rows win.
#include "tandem/linalg/kernels/tournament.hpp"

#include <algorithm>
#include <numeric>

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/getrf.hpp"
#include "tandem/linalg/kernels/lacpy.hpp"
#include "tandem/linalg/kernels/laswp.hpp"

namespace tandem::linalg::kernels {
namespace {

/// Plays a match. `space.rows` holds the candidates; `stack(values)` puts their values there. Winners are written last,
/// since they may replace what was stacked.
template <Scalar T, class Stack>
void choose(const MatchSpace<T>& space, std::size_t count, const Stack& stack,
            const Candidates<T, std::size_t>& winners) {
  const std::size_t columns = winners.values.cols, chosen = winners.rows.size();
  TANDEM_DEBUG_ASSERT(space.values.rows >= count && space.values.cols >= columns && chosen <= count);
  const MatrixView<T> values = space.values.block(0, 0, count, columns);
  const auto pivots = space.pivots.first(std::min(count, columns));
  stack(values);
  getrf(values, pivots);
  // Factors have taken the place of the values.
  stack(values);
  laswp<T>(pivots, values);
  for (std::size_t t = 0; t < pivots.size(); ++t) std::swap(space.rows[t], space.rows[pivots[t]]);
  lacpy<T>(Uplo::general, values.block(0, 0, chosen, columns), winners.values);
  std::copy_n(space.rows.begin(), chosen, winners.rows.begin());
}

template <Scalar T>
void stack_values(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> values) {
  lacpy<T>(Uplo::general, a, values.block(0, 0, a.rows, values.cols));
  if (!b.empty()) lacpy<T>(Uplo::general, b, values.block(a.rows, 0, b.rows, values.cols));
}

}  // namespace

template <Scalar T>
void play_first_match(const TileRows<T>& a, const TileRows<T>& b, const Candidates<T, std::size_t>& winners,
                      const MatchSpace<T>& space) {
  const std::size_t of_a = a.values.rows, of_b = b.values.rows;
  std::iota(space.rows.begin(), space.rows.begin() + of_a, a.first);
  std::iota(space.rows.begin() + of_a, space.rows.begin() + of_a + of_b, b.first);
  choose<T>(space, of_a + of_b, [&](MatrixView<T> values) { stack_values<T>(a.values, b.values, values); }, winners);
}

template <Scalar T>
void play_match(const Candidates<T, std::size_t>& a, const Candidates<const T, const std::size_t>& b,
                const MatchSpace<T>& space) {
  const auto end_of_a = std::copy(a.rows.begin(), a.rows.end(), space.rows.begin());
  std::copy(b.rows.begin(), b.rows.end(), end_of_a);
  choose<T>(space, a.rows.size() + b.rows.size(),
            [&](MatrixView<T> values) { stack_values<T>(a.values, b.values, values); }, a);
}

#define INSTANTIATE(T)                                                                                          \
  template void play_first_match<T>(const TileRows<T>&, const TileRows<T>&, const Candidates<T, std::size_t>&,  \
                                    const MatchSpace<T>&);                                                      \
  template void play_match<T>(const Candidates<T, std::size_t>&, const Candidates<const T, const std::size_t>&, \
                              const MatchSpace<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
