// tandem/linalg/kernels/unmqr.cpp: block after block of reflectors, in the order of the product.
#include "tandem/linalg/kernels/unmqr.hpp"

#include <algorithm>

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/block_reflector.hpp"

namespace tandem::linalg::kernels {

using namespace internal;

template <Scalar T>
void unmqr(Op op, std::type_identity_t<MatrixView<const T>> v, std::type_identity_t<MatrixView<const T>> t,
           MatrixView<T> c) {
  const std::size_t reflectors = std::min(v.rows, v.cols), ib = t.rows;
  TANDEM_DEBUG_ASSERT(op != Op::trans && c.rows == v.rows);
  TANDEM_DEBUG_ASSERT(reflectors == 0 || (ib > 0 && ib <= block_reflector_max && t.cols >= reflectors));
  for_each_block(op, reflectors, ib, [&](std::size_t p, std::size_t k) {
    apply_reflectors<T>(op, trapezoid_panel(v, p, k), t.block(0, p, k, k), c.block(p, 0, k, c.cols),
                        c.block(p + k, 0, c.rows - p - k, c.cols));
  });
}

#define INSTANTIATE(T) template void unmqr<T>(Op, MatrixView<const T>, MatrixView<const T>, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
