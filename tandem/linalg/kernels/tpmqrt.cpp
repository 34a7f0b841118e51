// tandem/linalg/kernels/tpmqrt.cpp: block after block of reflectors, in the order of the product.
#include "tandem/linalg/kernels/tpmqrt.hpp"

#include <algorithm>

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/block_reflector.hpp"

namespace tandem::linalg::kernels {

using namespace internal;

template <Scalar T>
void tpmqrt(Op op, std::type_identity_t<MatrixView<const T>> v, std::type_identity_t<MatrixView<const T>> t,
            MatrixView<T> a, MatrixView<T> b) {
  const std::size_t n = v.cols, ib = t.rows;
  TANDEM_DEBUG_ASSERT(op != Op::trans && b.rows == v.rows && a.rows >= n && a.cols == b.cols);
  TANDEM_DEBUG_ASSERT(n == 0 || (ib > 0 && ib <= block_reflector_max && t.cols >= n));
  for_each_block(op, n, ib, [&](std::size_t p, std::size_t k) {
    const Panel<const T> panel{.r = {nullptr, k, k, k}, .below = v.block(0, p, v.rows, k)};
    apply_reflectors<T>(op, panel, t.block(0, p, k, k), a.block(p, 0, k, a.cols), b);
  });
}

#define INSTANTIATE(T) \
  template void tpmqrt<T>(Op, MatrixView<const T>, MatrixView<const T>, MatrixView<T>, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
