// tandem/linalg/kernels/laswp.cpp: column by column, so that each column is in the near cache while its elements are
// exchanged.
#include "tandem/linalg/kernels/laswp.hpp"

#include <algorithm>
#include <utility>

#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg::kernels {

template <Scalar T>
void laswp(std::span<const std::size_t> interchanges, MatrixView<T> a) {
  for (std::size_t j = 0; j < a.cols; ++j) {
    T* const column = &a(0, j);
    for (std::size_t t = 0; t < interchanges.size(); ++t) std::swap(column[t], column[interchanges[t]]);
  }
}

template <Scalar T>
void exchange_rows(std::span<const std::size_t> partners, std::size_t first, MatrixView<T> a, MatrixView<T> b) {
  TANDEM_DEBUG_ASSERT(a.cols == b.cols && partners.size() <= a.rows);
  struct Pair {
    std::size_t in_a;
    std::size_t in_b;
  };
  constexpr std::size_t capacity = 128;
  Pair pairs[capacity];
  for (std::size_t t = 0; t < partners.size();) {
    std::size_t count = 0;
    for (; t < partners.size() && count < capacity; ++t)
      if (partners[t] >= first && partners[t] < first + b.rows) pairs[count++] = {t, partners[t] - first};
    if (count == 0) continue;
    // Rows lie across the columns, which no hardware prefetches: prefetching them saves 2 % of a factorisation.
    for (std::size_t j = 0; j < a.cols; ++j) {
      const std::size_t ahead = std::min(j + 4, a.cols - 1);
      for (std::size_t p = 0; p < count; ++p) {
        __builtin_prefetch(&b(pairs[p].in_b, ahead), 1);
        __builtin_prefetch(&a(pairs[p].in_a, ahead), 1);
        std::swap(a(pairs[p].in_a, j), b(pairs[p].in_b, j));
      }
    }
  }
}

#define INSTANTIATE(T)                                                       \
  template void laswp<T>(std::span<const std::size_t>, MatrixView<T>);       \
  template void exchange_rows<T>(std::span<const std::size_t>, std::size_t, MatrixView<T>, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
