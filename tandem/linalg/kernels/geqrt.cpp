// tandem/linalg/kernels/geqrt.cpp: panel by panel; each is applied to the columns on its right.
#include "tandem/linalg/kernels/geqrt.hpp"

#include <algorithm>

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/block_reflector.hpp"

namespace tandem::linalg::kernels {

using namespace internal;

template <Scalar T>
void geqrt(MatrixView<T> a, MatrixView<T> t) {
  const std::size_t reflectors = std::min(a.rows, a.cols), ib = t.rows;
  TANDEM_DEBUG_ASSERT(reflectors == 0 || (ib > 0 && ib <= block_reflector_max && t.cols >= reflectors));
  for (std::size_t p = 0; p < reflectors; p += ib) {
    const std::size_t k = std::min(ib, reflectors - p), after = a.cols - p - k;
    const Panel<T> panel = trapezoid_panel(a, p, k);
    const MatrixView<T> factor = t.block(0, p, k, k);
    factorise_panel(panel, factor);
    apply_reflectors<T>(Op::conj_trans, panel, factor, a.block(p, p + k, k, after),
                        a.block(p + k, p + k, a.rows - p - k, after));
  }
}

#define INSTANTIATE(T) template void geqrt<T>(MatrixView<T>, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
