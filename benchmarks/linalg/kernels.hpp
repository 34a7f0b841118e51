// benchmarks/linalg/kernels.hpp: plain BLAS and LAPACK calls on tiles, in single and double precision.
#pragma once

// C++ has its own complex numbers; this keeps C's out of the headers.
#define LAPACK_COMPLEX_CPP
#include <cblas.h>
#include <lapacke.h>

#include <string>
#include <type_traits>

namespace benchmarks::linalg {

/// Name and version of the BLAS library, as it says itself, without the spaces around.
inline std::string library_version() {
  const std::string config = openblas_get_config();
  return config.substr(0, config.find(' ', config.find(' ') + 1));
}

/// Sizes of a tile operation: C is m x n, and the inner extent of a product is k. Leading dimensions are the rows of
/// each tile.
struct Extents {
  int m;
  int n;
  int k;
};

/// A = L L^T, in place, lower. Returns LAPACK's info.
template <class T>
int potrf(int n, T* a) {
  if constexpr (std::is_same_v<T, double>) {
    return LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', n, a, n);
  } else {
    return LAPACKE_spotrf(LAPACK_COL_MAJOR, 'L', n, a, n);
  }
}

/// A := A L^-T, with L n x n and A m x n.
template <class T>
void trsm(Extents extents, const T* l, T* a) {
  const auto [m, n, k] = extents;
  if constexpr (std::is_same_v<T, double>) {
    cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, m, n, 1.0, l, n, a, m);
  } else {
    cblas_strsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, m, n, 1.0F, l, n, a, m);
  }
}

/// C := C - A A^T in the lower triangle, with A n x k.
template <class T>
void syrk(Extents extents, const T* a, T* c) {
  const auto [m, n, k] = extents;
  if constexpr (std::is_same_v<T, double>) {
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, n, k, -1.0, a, n, 1.0, c, n);
  } else {
    cblas_ssyrk(CblasColMajor, CblasLower, CblasNoTrans, n, k, -1.0F, a, n, 1.0F, c, n);
  }
}

/// C := C - A B^T, with A m x k and B n x k.
template <class T>
void gemm(Extents extents, const T* a, const T* b, T* c) {
  const auto [m, n, k] = extents;
  if constexpr (std::is_same_v<T, double>) {
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, m, n, k, -1.0, a, m, b, n, 1.0, c, m);
  } else {
    cblas_sgemm(CblasColMajor, CblasNoTrans, CblasTrans, m, n, k, -1.0F, a, m, b, n, 1.0F, c, m);
  }
}

}  // namespace benchmarks::linalg
