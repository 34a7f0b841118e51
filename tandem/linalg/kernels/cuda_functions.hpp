// tandem/linalg/kernels/cuda_functions.hpp: the functions of cuBLAS and cuSOLVER behind the tile kernels, in declarations of our own.
//
// Enumerations are int, handles are void*, and numbers of CUDA's complex types are std::complex, which has the same layout.
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
/// How many elements of workspace potrf needs.
template <Scalar T>
using CusolverPotrfSize = int(void* handle, int uplo, int n, T* a, int lda, int* count);
template <Scalar T>
using CusolverPotrf = int(void* handle, int uplo, int n, T* a, int lda, T* workspace, int count, int* info);

/// Their symbols. For real types herk is syrk.
template <Scalar T>
struct CudaSymbols;
/// Of one type, whose routines have this letter.
#define TANDEM_LINALG_CUDA_SYMBOLS(T, letter, hermitian)                           \
  template <>                                                                      \
  struct CudaSymbols<T> {                                                          \
    static constexpr const char* gemm = "cublas" #letter "gemm_v2";                \
    static constexpr const char* syrk = "cublas" #letter "syrk_v2";                \
    static constexpr const char* herk = "cublas" #letter #hermitian "_v2";         \
    static constexpr const char* trsm = "cublas" #letter "trsm_v2";                \
    static constexpr const char* potrf_size = "cusolverDn" #letter "potrf_bufferSize"; \
    static constexpr const char* potrf = "cusolverDn" #letter "potrf";             \
  };
TANDEM_LINALG_CUDA_SYMBOLS(float, S, syrk)
TANDEM_LINALG_CUDA_SYMBOLS(double, D, syrk)
TANDEM_LINALG_CUDA_SYMBOLS(std::complex<float>, C, herk)
TANDEM_LINALG_CUDA_SYMBOLS(std::complex<double>, Z, herk)
#undef TANDEM_LINALG_CUDA_SYMBOLS

}  // namespace tandem::linalg::internal
