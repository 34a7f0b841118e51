// tandem/linalg/kernels/gemv.cpp: the BLAS's gemv, symv and hemv.
#include "tandem/linalg/kernels/gemv.hpp"

#include <algorithm>
#include <array>

#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg::kernels {

using namespace internal;

template <Scalar T>
void gemv(Op op, std::type_identity_t<MatrixView<const T>> a, std::type_identity_t<std::span<const T>> x,
          std::span<T> y) {
  TANDEM_DEBUG_ASSERT(x.size() == op_cols(op, a.rows, a.cols) && y.size() == op_rows(op, a.rows, a.cols));
  // With beta = 0 the BLAS scales y, which in some libraries turns uninitialised content into a NaN.
  std::fill(y.begin(), y.end(), T(0));
  if (a.empty()) return;
  const int m = blas_int(a.rows), n = blas_int(a.cols), lda = blas_ld(a.ld);
  const CBLAS_TRANSPOSE trans = blas_op(op);
  const T one = T(1);
  if constexpr (std::is_same_v<T, float>) {
    cblas_sgemv(CblasColMajor, trans, m, n, one, a.data, lda, x.data(), 1, one, y.data(), 1);
  } else if constexpr (std::is_same_v<T, double>) {
    cblas_dgemv(CblasColMajor, trans, m, n, one, a.data, lda, x.data(), 1, one, y.data(), 1);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cblas_cgemv(CblasColMajor, trans, m, n, &one, a.data, lda, x.data(), 1, &one, y.data(), 1);
  } else {
    cblas_zgemv(CblasColMajor, trans, m, n, &one, a.data, lda, x.data(), 1, &one, y.data(), 1);
  }
}

template <Scalar T>
void hemv(Uplo uplo, std::type_identity_t<MatrixView<const T>> a, std::type_identity_t<std::span<const T>> x,
          std::span<T> y) {
  TANDEM_DEBUG_ASSERT(a.rows == a.cols && x.size() == a.rows && y.size() == a.rows && uplo != Uplo::general);
  std::fill(y.begin(), y.end(), T(0));
  if (a.empty()) return;
  const int n = blas_int(a.rows), lda = blas_ld(a.ld);
  const CBLAS_UPLO triangle = blas_uplo(uplo);
  const T one = T(1);
  if constexpr (std::is_same_v<T, float>) {
    cblas_ssymv(CblasColMajor, triangle, n, one, a.data, lda, x.data(), 1, one, y.data(), 1);
  } else if constexpr (std::is_same_v<T, double>) {
    cblas_dsymv(CblasColMajor, triangle, n, one, a.data, lda, x.data(), 1, one, y.data(), 1);
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    cblas_chemv(CblasColMajor, triangle, n, &one, a.data, lda, x.data(), 1, &one, y.data(), 1);
  } else {
    cblas_zhemv(CblasColMajor, triangle, n, &one, a.data, lda, x.data(), 1, &one, y.data(), 1);
  }
}

template <Scalar T>
double real_dot(std::span<const T> x, std::type_identity_t<std::span<const T>> y) noexcept {
  TANDEM_DEBUG_ASSERT(x.size() == y.size());
  const auto term = [&](std::size_t i) {
    double product = static_cast<double>(real_part(x[i])) * static_cast<double>(real_part(y[i]));
    if constexpr (is_complex<T>) product += static_cast<double>(x[i].imag()) * static_cast<double>(y[i].imag());
    return product;
  };
  // Independent sums.
  std::array<double, 4> sums{};
  const std::size_t whole = x.size() - x.size() % sums.size();
  for (std::size_t i = 0; i < whole; i += sums.size())
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += term(i + lane);
  for (std::size_t i = whole; i < x.size(); ++i) sums[i - whole] += term(i);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

#define INSTANTIATE(T)                                                                 \
  template void gemv<T>(Op, MatrixView<const T>, std::span<const T>, std::span<T>);    \
  template void hemv<T>(Uplo, MatrixView<const T>, std::span<const T>, std::span<T>);  \
  template double real_dot<T>(std::span<const T>, std::span<const T>) noexcept;
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
