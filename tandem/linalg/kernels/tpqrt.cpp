// tandem/linalg/kernels/tpqrt.cpp: panel by panel; each is applied to the columns on its right.
#include "tandem/linalg/kernels/tpqrt.hpp"

#include <algorithm>

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/block_reflector.hpp"

namespace tandem::linalg::kernels {

using namespace internal;

template <Scalar T>
void tpqrt(MatrixView<T> a, MatrixView<T> b, MatrixView<T> t) {
  const std::size_t n = b.cols, ib = t.rows;
  TANDEM_DEBUG_ASSERT(a.rows >= n && a.cols >= n);
  TANDEM_DEBUG_ASSERT(n == 0 || (ib > 0 && ib <= block_reflector_max && t.cols >= n));
  for (std::size_t p = 0; p < n; p += ib) {
    const std::size_t k = std::min(ib, n - p), after = n - p - k;
    const Panel<T> panel = stacked_panel(a, b, p, k);
    const MatrixView<T> factor = t.block(0, p, k, k);
    factorise_panel(panel, factor);
    apply_reflectors<T>(Op::conj_trans, panel, factor, a.block(p, p + k, k, after), b.block(0, p + k, b.rows, after));
  }
}

#define INSTANTIATE(T) template void tpqrt<T>(MatrixView<T>, MatrixView<T>, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
