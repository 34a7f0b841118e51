// tandem/linalg/kernels/lacpy.cpp: column by column.
#include "tandem/linalg/kernels/lacpy.hpp"

#include <algorithm>

#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg::kernels {

template <Scalar T>
void lacpy(Uplo uplo, std::type_identity_t<MatrixView<const T>> a, MatrixView<T> b) {
  TANDEM_DEBUG_ASSERT(a.rows == b.rows && a.cols == b.cols);
  for (std::size_t j = 0; j < b.cols; ++j) {
    const std::size_t first = uplo == Uplo::lower ? std::min(j, b.rows) : 0;
    const std::size_t last = uplo == Uplo::upper ? std::min(j + 1, b.rows) : b.rows;
    std::copy(a.data + first + j * a.ld, a.data + last + j * a.ld, b.data + first + j * b.ld);
  }
}

#define INSTANTIATE(T) template void lacpy<T>(Uplo, MatrixView<const T>, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
