// tests/cuda/fake_blas.cpp: the part of cuBLAS and cuSOLVER that the tile kernels use, as loops over elements, for
// tests.
#include <algorithm>
#include <cmath>
#include <complex>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/linalg/kernels/cuda_functions.hpp"
#include "tests/cuda/fake_objects.hpp"

namespace tandem::fake_cuda {
namespace {

using namespace linalg::internal;
using linalg::Real;
using runtime::cuda::Stream;

constexpr int kNotInitialised = 1, kInvalidValue = 7;

struct Handle {
  Stream stream = nullptr;
  int pointer_mode = 0;  ///< scalars are in main memory
};

template <class T>
T conjugate(T value) {
  if constexpr (std::is_floating_point_v<T>) return value;
  else return std::conj(value);
}

/// Element (i, j) of op(A).
template <class T>
T element(int op, const T* a, int lda, int i, int j) {
  const auto at = [&](int row, int col) { return a[row + static_cast<std::ptrdiff_t>(col) * lda]; };
  return op == kCublasNoTrans ? at(i, j) : op == kCublasTrans ? at(j, i) : conjugate(at(j, i));
}

/// Posts `work`, if all that it uses is in the device's memory.
template <class Work, class... Pointers>
int post(void* handle, Work work, Pointers... pointers) {
  const Stream stream = static_cast<Handle*>(handle)->stream;
  if (stream == nullptr) return kNotInitialised;
  if (static_cast<Handle*>(handle)->pointer_mode != 0) return kInvalidValue;
  if (!(is_far(pointers) && ...)) return kInvalidValue;
  stream->post([stream, work = std::move(work)] { run_kernel(stream->context, work); });
  return 0;
}

template <class T>
int gemm(void* handle, int op_a, int op_b, int m, int n, int k, const T* alpha, const T* a, int lda, const T* b,
         int ldb, const T* beta, T* c, int ldc) {
  return post(
      handle,
      [=, alpha = *alpha, beta = *beta] {
        for (int j = 0; j < n; ++j)
          for (int i = 0; i < m; ++i) {
            T sum(0);
            for (int l = 0; l < k; ++l) sum += element(op_a, near(a), lda, i, l) * element(op_b, near(b), ldb, l, j);
            T& to = near(c)[i + static_cast<std::ptrdiff_t>(j) * ldc];
            to = alpha * sum + (beta == T(0) ? T(0) : beta * to);
          }
      },
      a, b, c);
}

/// C := alpha op(A) op(A)' + beta C, on a triangle; ' is the transpose, or the conjugate one.
template <class T, class Factor>
int rank_k(void* handle, int uplo, int op, int n, int k, const Factor* alpha, const T* a, int lda, const Factor* beta,
           T* c, int ldc, bool hermitian) {
  return post(
      handle,
      [=, alpha = *alpha, beta = *beta] {
        for (int j = 0; j < n; ++j)
          for (int i = uplo == kCublasLower ? j : 0; i < (uplo == kCublasLower ? n : j + 1); ++i) {
            T sum(0);
            for (int l = 0; l < k; ++l) {
              const T other = element(op, near(a), lda, j, l);
              sum += element(op, near(a), lda, i, l) * (hermitian ? conjugate(other) : other);
            }
            T& to = near(c)[i + static_cast<std::ptrdiff_t>(j) * ldc];
            to = alpha * sum + (beta == Factor(0) ? T(0) : beta * to);
          }
      },
      a, c);
}

template <class T>
int trsm(void* handle, int side, int uplo, int op, int diag, int m, int n, const T* alpha, const T* a, int lda, T* b,
         int ldb) {
  return post(
      handle,
      [=, alpha = *alpha] {
        const bool left = side == kCublasLeft;
        const int order = left ? m : n, others = left ? n : m;
        const bool lower = (uplo == kCublasLower) == (op == kCublasNoTrans);  // op(A)
        const bool forward = lower == left;
        const auto x = [&](int unknown, int other) -> T& {
          return near(b)[left ? unknown + static_cast<std::ptrdiff_t>(other) * ldb
                              : other + static_cast<std::ptrdiff_t>(unknown) * ldb];
        };
        const auto coefficient = [&](int to, int from) {
          return left ? element(op, near(a), lda, to, from) : element(op, near(a), lda, from, to);
        };
        for (int other = 0; other < others; ++other)
          for (int step = 0; step < order; ++step) {
            const int to = forward ? step : order - 1 - step;
            T sum = alpha * x(to, other);
            for (int before = 0; before < step; ++before) {
              const int from = forward ? before : order - 1 - before;
              sum -= coefficient(to, from) * x(from, other);
            }
            x(to, other) = diag == kCublasUnit ? sum : sum / coefficient(to, to);
          }
      },
      a, b);
}

/// C := alpha op(A) B or alpha B op(A); C may be B.
template <class T>
int trmm(void* handle, int side, int uplo, int op, int diag, int m, int n, const T* alpha, const T* a, int lda,
         const T* b, int ldb, T* c, int ldc) {
  return post(
      handle,
      [=, alpha = *alpha] {
        const bool left = side == kCublasLeft;
        const int order = left ? m : n;
        const bool lower = (uplo == kCublasLower) == (op == kCublasNoTrans);  // op(A)
        const auto coefficient = [&](int i, int j) {
          if (i != j && lower != (i > j)) return T(0);
          return i == j && diag == kCublasUnit ? T(1) : element(op, near(a), lda, i, j);
        };
        std::vector<T> product(static_cast<std::size_t>(m) * static_cast<std::size_t>(n));
        for (int j = 0; j < n; ++j)
          for (int i = 0; i < m; ++i) {
            T sum(0);
            for (int l = 0; l < order; ++l)
              sum += left ? coefficient(i, l) * element(kCublasNoTrans, near(b), ldb, l, j)
                          : element(kCublasNoTrans, near(b), ldb, i, l) * coefficient(l, j);
            product[static_cast<std::size_t>(i + static_cast<std::ptrdiff_t>(j) * m)] = alpha * sum;
          }
        for (int j = 0; j < n; ++j)
          for (int i = 0; i < m; ++i)
            near(c)[i + static_cast<std::ptrdiff_t>(j) * ldc] =
                product[static_cast<std::size_t>(i + static_cast<std::ptrdiff_t>(j) * m)];
      },
      a, b, c);
}

/// C := alpha op(A) + beta op(B), and B is not read with beta 0.
template <class T>
int geam(void* handle, int op_a, int op_b, int m, int n, const T* alpha, const T* a, int lda, const T* beta, const T* b,
         int ldb, T* c, int ldc) {
  if ((c == a && (op_a != kCublasNoTrans || lda != ldc)) || (c == b && (op_b != kCublasNoTrans || ldb != ldc)))
    return kInvalidValue;
  return post(
      handle,
      [=, alpha = *alpha, beta = *beta] {
        for (int j = 0; j < n; ++j)
          for (int i = 0; i < m; ++i) {
            const T of_a = alpha * element(op_a, near(a), lda, i, j);
            near(c)[i + static_cast<std::ptrdiff_t>(j) * ldc] =
                beta == T(0) ? of_a : of_a + beta * element(op_b, near(b), ldb, i, j);
          }
      },
      a, b, c);
}

template <class T>
int potrf_size(int n, int* count) {
  *count = 16 * n;
  return 0;
}

/// L(j,j) := sqrt(A(j,j) - sum |L(j,l)|^2), L(i,j) := (A(i,j) - sum L(i,l) conj(L(j,l))) / L(j,j); the upper factor is
/// its conjugate transpose.
template <class T>
int potrf(void* handle, int uplo, int n, T* a, int lda, T* workspace, int count, int* info) {
  if (count < 16 * n) return kInvalidValue;
  return post(
      handle,
      [=] {
        near(workspace)[count - 1] = T(0);  // it is there
        const auto stored = [&](int i, int j) -> T& {
          return near(a)[uplo == kCublasLower ? i + static_cast<std::ptrdiff_t>(j) * lda
                                              : j + static_cast<std::ptrdiff_t>(i) * lda];
        };
        const auto get = [&](int i, int j) { return uplo == kCublasLower ? stored(i, j) : conjugate(stored(i, j)); };
        for (int j = 0; j < n; ++j) {
          Real<T> pivot = std::real(get(j, j));
          for (int l = 0; l < j; ++l) pivot -= std::norm(get(j, l));
          if (!(pivot > 0)) {
            *near(info) = j + 1;
            return;
          }
          pivot = std::sqrt(pivot);
          stored(j, j) = T(pivot);
          for (int i = j + 1; i < n; ++i) {
            T sum = get(i, j);
            for (int l = 0; l < j; ++l) sum -= get(i, l) * conjugate(get(j, l));
            sum /= pivot;
            stored(i, j) = uplo == kCublasLower ? sum : conjugate(sum);
          }
        }
        *near(info) = 0;
      },
      a, workspace, info);
}

template <class T>
int getrf_size(int m, int n, int* count) {
  *count = 4 * (m + n);
  return 0;
}

/// Column after column, without pivoting.
template <class T>
int getrf(void* handle, int m, int n, T* a, int lda, T* workspace, const int* pivots, int* info) {
  if (pivots != nullptr) return kInvalidValue;  // nobody here asks for them
  return post(
      handle,
      [=] {
        near(workspace)[4 * (m + n) - 1] = T(0);  // it is there
        const auto at = [&](int i, int j) -> T& { return near(a)[i + static_cast<std::ptrdiff_t>(j) * lda]; };
        *near(info) = 0;
        for (int k = 0; k < std::min(m, n); ++k) {
          if (at(k, k) == T(0)) {
            *near(info) = k + 1;
            return;
          }
          for (int i = k + 1; i < m; ++i) at(i, k) /= at(k, k);
          for (int j = k + 1; j < n; ++j)
            for (int i = k + 1; i < m; ++i) at(i, j) -= at(i, k) * at(k, j);
        }
      },
      a, workspace, info);
}

int create(void** handle) {
  if (!settings().has_blas) return kNotInitialised;
  *handle = new Handle;
  return 0;
}

}  // namespace
}  // namespace tandem::fake_cuda

using namespace tandem::fake_cuda;

extern "C" {

int cublasCreate_v2(void** handle) { return create(handle); }
int cusolverDnCreate(void** handle) { return create(handle); }
int cublasDestroy_v2(void* handle) {
  delete static_cast<Handle*>(handle);
  return 0;
}
int cusolverDnDestroy(void* handle) { return cublasDestroy_v2(handle); }
int cublasSetStream_v2(void* handle, Stream stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return 0;
}
int cublasSetPointerMode_v2(void* handle, int mode) {
  static_cast<Handle*>(handle)->pointer_mode = mode;
  return 0;
}
int cusolverDnSetStream(void* handle, Stream stream) { return cublasSetStream_v2(handle, stream); }

#define ROUTINES(T, letter)                                                                                            \
  int cublas##letter##gemm_v2(void* handle, int op_a, int op_b, int m, int n, int k, const T* alpha, const T* a,       \
                              int lda, const T* b, int ldb, const T* beta, T* c, int ldc) {                            \
    return gemm(handle, op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                     \
  }                                                                                                                    \
  int cublas##letter##syrk_v2(void* handle, int uplo, int op, int n, int k, const T* alpha, const T* a, int lda,       \
                              const T* beta, T* c, int ldc) {                                                          \
    return rank_k(handle, uplo, op, n, k, alpha, a, lda, beta, c, ldc, false);                                         \
  }                                                                                                                    \
  int cublas##letter##trsm_v2(void* handle, int side, int uplo, int op, int diag, int m, int n, const T* alpha,        \
                              const T* a, int lda, T* b, int ldb) {                                                    \
    return trsm(handle, side, uplo, op, diag, m, n, alpha, a, lda, b, ldb);                                            \
  }                                                                                                                    \
  int cublas##letter##trmm_v2(void* handle, int side, int uplo, int op, int diag, int m, int n, const T* alpha,        \
                              const T* a, int lda, const T* b, int ldb, T* c, int ldc) {                               \
    return trmm(handle, side, uplo, op, diag, m, n, alpha, a, lda, b, ldb, c, ldc);                                    \
  }                                                                                                                    \
  int cublas##letter##geam(void* handle, int op_a, int op_b, int m, int n, const T* alpha, const T* a, int lda,        \
                           const T* beta, const T* b, int ldb, T* c, int ldc) {                                        \
    return geam(handle, op_a, op_b, m, n, alpha, a, lda, beta, b, ldb, c, ldc);                                        \
  }                                                                                                                    \
  int cusolverDn##letter##getrf_bufferSize(void*, int m, int n, T*, int, int* count) {                                 \
    return getrf_size<T>(m, n, count);                                                                                 \
  }                                                                                                                    \
  int cusolverDn##letter##getrf(void* handle, int m, int n, T* a, int lda, T* workspace, int* pivots, int* info) {     \
    return getrf(handle, m, n, a, lda, workspace, pivots, info);                                                       \
  }                                                                                                                    \
  int cusolverDn##letter##potrf_bufferSize(void*, int, int n, T*, int, int* count) { return potrf_size<T>(n, count); } \
  int cusolverDn##letter##potrf(void* handle, int uplo, int n, T* a, int lda, T* workspace, int count, int* info) {    \
    return potrf(handle, uplo, n, a, lda, workspace, count, info);                                                     \
  }
ROUTINES(float, S)
ROUTINES(double, D)
ROUTINES(std::complex<float>, C)
ROUTINES(std::complex<double>, Z)

#define HERMITIAN(T, letter)                                                                                           \
  int cublas##letter##herk_v2(void* handle, int uplo, int op, int n, int k, const Real<T>* alpha, const T* a, int lda, \
                              const Real<T>* beta, T* c, int ldc) {                                                    \
    return rank_k(handle, uplo, op, n, k, alpha, a, lda, beta, c, ldc, true);                                          \
  }
HERMITIAN(std::complex<float>, C)
HERMITIAN(std::complex<double>, Z)

}  // extern "C"
