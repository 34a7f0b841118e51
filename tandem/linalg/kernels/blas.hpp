// tandem/linalg/kernels/blas.hpp: the BLAS routines we stand on, as overloads for s, d, c and z. Private to the
// kernels.
#pragma once

#if __has_include(<cblas.h>)
#include <cblas.h>
#else  // MKL alone
#include <mkl_cblas.h>
#endif

#include <climits>
#include <complex>
#include <cstddef>

#include "tandem/base/assert.hpp"
#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

/// Instantiates MACRO(T) for the four scalar types.
#define TANDEM_LINALG_FOR_EACH_SCALAR(MACRO) \
  MACRO(float) MACRO(double) MACRO(std::complex<float>) MACRO(std::complex<double>)

namespace tandem::linalg::internal {

/// A size as the BLAS takes it. Tiles are far below the limit; a whole matrix passed as one tile may not be.
inline int blas_int(std::size_t value) noexcept {
  TANDEM_ASSERT(value <= INT_MAX);
  return static_cast<int>(value);
}

inline int blas_ld(std::size_t ld) noexcept { return blas_int(ld > 0 ? ld : 1); }

inline CBLAS_TRANSPOSE blas_op(Op op) noexcept {
  return op == Op::no_trans ? CblasNoTrans : op == Op::trans ? CblasTrans : CblasConjTrans;
}

inline CBLAS_UPLO blas_uplo(Uplo uplo) noexcept { return uplo == Uplo::lower ? CblasLower : CblasUpper; }

inline std::size_t op_rows(Op op, std::size_t rows, std::size_t cols) noexcept {
  return op == Op::no_trans ? rows : cols;
}
inline std::size_t op_cols(Op op, std::size_t rows, std::size_t cols) noexcept {
  return op == Op::no_trans ? cols : rows;
}

/// The block of the stored A whose op() is rows [row, row + rows) and columns [col, col + cols) of op(A).
template <class T>
MatrixView<T> op_block(Op op, MatrixView<T> a, std::size_t row, std::size_t col, std::size_t rows,
                       std::size_t cols) noexcept {
  return op == Op::no_trans ? a.block(row, col, rows, cols) : a.block(col, row, cols, rows);
}

// clang-format off
inline void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, float alpha, const float* a, int lda,
                      const float* b, int ldb, float beta, float* c, int ldc) {
  cblas_sgemm(CblasColMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
inline void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, double alpha, const double* a, int lda,
                      const double* b, int ldb, double beta, double* c, int ldc) {
  cblas_dgemm(CblasColMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
inline void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, std::complex<float> alpha,
                      const std::complex<float>* a, int lda, const std::complex<float>* b, int ldb, std::complex<float> beta,
                      std::complex<float>* c, int ldc) {
  cblas_cgemm(CblasColMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}
inline void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, std::complex<double> alpha,
                      const std::complex<double>* a, int lda, const std::complex<double>* b, int ldb, std::complex<double> beta,
                      std::complex<double>* c, int ldc) {
  cblas_zgemm(CblasColMajor, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
}
// clang-format on

}  // namespace tandem::linalg::internal
