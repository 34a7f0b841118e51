// tandem/linalg/kernels/cuda_functions.hpp: the functions of cuBLAS and cuSOLVER behind the tile kernels, in
// declarations of our own.
//
// Enumerations are int, handles are void*, and numbers of CUDA's complex types are std::complex, which has the same
// layout.
#pragma once

#include <complex>

#include "tandem/linalg/types.hpp"

namespace tandem::linalg::internal {

/// Values of cublasOperation_t and other enumerations of cublas_api.h.
enum CublasValue : int {
  kCublasNoTrans = 0,
  kCublasTrans = 1,
  kCublasConjTrans = 2,
  kCublasLower = 0,
  kCublasUpper = 1,
  kCublasLeft = 0,
  kCublasRight = 1,
  kCublasNonUnit = 0,
  kCublasUnit = 1,
};

template <Scalar T>
using CublasGemm = int(void* handle, int op_a, int op_b, int m, int n, int k, const T* alpha, const T* a, int lda, const T* b, int ldb, const T* beta,
                       T* c, int ldc);
template <Scalar T>
using CublasSyrk = int(void* handle, int uplo, int op, int n, int k, const T* alpha, const T* a, int lda, const T* beta, T* c, int ldc);
template <Scalar T>
using CublasHerk = int(void* handle, int uplo, int op, int n, int k, const Real<T>* alpha, const T* a, int lda, const Real<T>* beta, T* c, int ldc);
template <Scalar T>
using CublasTrsm = int(void* handle, int side, int uplo, int op, int diag, int m, int n, const T* alpha, const T* a, int lda, T* b, int ldb);
/// C := alpha op(A) B or alpha B op(A) with a triangular A. C may be B.
template <Scalar T>
using CublasTrmm = int(void* handle, int side, int uplo, int op, int diag, int m, int n, const T* alpha, const T* a, int lda, const T* b, int ldb, T* c,
                       int ldc);
/// C := alpha op(A) + beta op(B). C may be A or B; with beta 0, B is not read.
template <Scalar T>
using CublasGeam = int(void* handle, int op_a, int op_b, int m, int n, const T* alpha, const T* a, int lda, const T* beta, const T* b, int ldb, T* c,
                       int ldc);
/// Number of elements of workspace that potrf needs.
template <Scalar T>
using CusolverPotrfSize = int(void* handle, int uplo, int n, T* a, int lda, int* count);
template <Scalar T>
using CusolverPotrf = int(void* handle, int uplo, int n, T* a, int lda, T* workspace, int count, int* info);
/// Number of elements of workspace that getrf needs.
template <Scalar T>
using CusolverGetrfSize = int(void* handle, int m, int n, T* a, int lda, int* count);
/// Factorises; without `pivots` it does not pivot.
template <Scalar T>
using CusolverGetrf = int(void* handle, int m, int n, T* a, int lda, T* workspace, int* pivots, int* info);

/// The symbols of these functions, and the names of our own kernels (cuda_rows.inc). For real types herk is syrk.
template <Scalar T>
struct CudaSymbols;
/// Instantiates for one type, which is `type` in CUDA C++, and whose routines have this letter.
#define TANDEM_LINALG_CUDA_SYMBOLS(T, type, letter, hermitian)                           \
  template <>                                                                      \
  struct CudaSymbols<T> {                                                          \
    static constexpr const char* gemm = "cublas" #letter "gemm_v2";                \
    static constexpr const char* syrk = "cublas" #letter "syrk_v2";                \
    static constexpr const char* herk = "cublas" #letter #hermitian "_v2";         \
    static constexpr const char* trsm = "cublas" #letter "trsm_v2";                \
    static constexpr const char* trmm = "cublas" #letter "trmm_v2";                \
    static constexpr const char* geam = "cublas" #letter "geam";                   \
    static constexpr const char* potrf_size = "cusolverDn" #letter "potrf_bufferSize"; \
    static constexpr const char* potrf = "cusolverDn" #letter "potrf";             \
    static constexpr const char* getrf_size = "cusolverDn" #letter "getrf_bufferSize"; \
    static constexpr const char* getrf = "cusolverDn" #letter "getrf";             \
    static constexpr const char* laswp = "laswp<" #type ">";                       \
    static constexpr const char* exchange_rows = "exchange_rows<" #type ">";       \
  };
TANDEM_LINALG_CUDA_SYMBOLS(float, float, S, syrk)
TANDEM_LINALG_CUDA_SYMBOLS(double, double, D, syrk)
TANDEM_LINALG_CUDA_SYMBOLS(std::complex<float>, float2, C, herk)
TANDEM_LINALG_CUDA_SYMBOLS(std::complex<double>, double2, Z, herk)
#undef TANDEM_LINALG_CUDA_SYMBOLS

}  // namespace tandem::linalg::internal
