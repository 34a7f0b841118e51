// tandem/linalg/kernels/hemm.cpp: the BLAS's symm and hemm. Only residuals use it, so it is not tuned.
#include "tandem/linalg/kernels/hemm.hpp"

#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg::kernels {

template <Scalar T>
void hemm(Uplo uplo, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          std::type_identity_t<MatrixView<const T>> b, std::type_identity_t<T> beta, MatrixView<T> c) {
  using namespace internal;
  TANDEM_DEBUG_ASSERT(a.rows == c.rows && a.cols == c.rows && b.rows == c.rows && b.cols == c.cols &&
                      uplo != Uplo::general);
  if (c.empty()) return;
  const int m = blas_int(c.rows), n = blas_int(c.cols);
  const int lda = blas_ld(a.ld), ldb = blas_ld(b.ld), ldc = blas_ld(c.ld);
  const CBLAS_UPLO triangle = blas_uplo(uplo);
  if constexpr (std::is_same_v<T, float>) {
    cblas_ssymm(CblasColMajor, CblasLeft, triangle, m, n, alpha, a.data, lda, b.data, ldb, beta, c.data, ldc);
  } else if constexpr (std::is_same_v<T, double>) {
    cblas_dsymm(CblasColMajor, CblasLeft, triangle, m, n, alpha, a.data, lda, b.data, ldb, beta, c.data, ldc);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cblas_chemm(CblasColMajor, CblasLeft, triangle, m, n, &alpha, a.data, lda, b.data, ldb, &beta, c.data, ldc);
  } else {
    cblas_zhemm(CblasColMajor, CblasLeft, triangle, m, n, &alpha, a.data, lda, b.data, ldb, &beta, c.data, ldc);
  }
}

#define INSTANTIATE(T) template void hemm<T>(Uplo, T, MatrixView<const T>, MatrixView<const T>, T, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
