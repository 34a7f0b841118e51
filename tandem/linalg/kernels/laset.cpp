// tandem/linalg/kernels/laset.cpp: column by column.
#include "tandem/linalg/kernels/laset.hpp"

#include <algorithm>

#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg::kernels {

template <Scalar T>
void laset(Uplo uplo, std::type_identity_t<T> off_diagonal, std::type_identity_t<T> diagonal, MatrixView<T> a) {
  for (std::size_t j = 0; j < a.cols; ++j) {
    const std::size_t first = uplo == Uplo::lower ? std::min(j + 1, a.rows) : 0;
    const std::size_t last = uplo == Uplo::upper ? std::min(j, a.rows) : a.rows;
    std::fill(a.data + first + j * a.ld, a.data + last + j * a.ld, off_diagonal);
    if (j < a.rows) a(j, j) = diagonal;
  }
}

#define INSTANTIATE(T) template void laset<T>(Uplo, T, T, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
