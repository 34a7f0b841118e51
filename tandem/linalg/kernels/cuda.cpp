// tandem/linalg/kernels/cuda.cpp: calls of cuBLAS and cuSOLVER, whose functions the device finds.
#include "tandem/linalg/kernels/cuda.hpp"

#include <fmt/format.h>

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/cuda_functions.hpp"
#include "tandem/runtime/memory/device_error.hpp"

namespace tandem::linalg::kernels::cuda {
namespace {

using namespace internal;

int cublas_op(Op op) { return op == Op::no_trans ? kCublasNoTrans : op == Op::trans ? kCublasTrans : kCublasConjTrans; }
int cublas_uplo(Uplo uplo) { return uplo == Uplo::lower ? kCublasLower : kCublasUpper; }

template <class Function>
Function* blas_function(CudaQueue& queue, const char* symbol) {
  return reinterpret_cast<Function*>(queue.blas_function(symbol));
}
template <class Function>
Function* solver_function(CudaQueue& queue, const char* symbol) {
  return reinterpret_cast<Function*>(queue.solver_function(symbol));
}

void check(int status, const char* symbol) {
  if (status != 0) throw DeviceError(DeviceEffect::refused, fmt::format("{} has refused its work: its status is {}", symbol, status));
}

}  // namespace

template <Scalar T>
void gemm(CudaQueue& queue, Op op_a, Op op_b, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          std::type_identity_t<MatrixView<const T>> b, std::type_identity_t<T> beta, MatrixView<T> c) {
  if (c.empty()) return;
  constexpr const char* symbol = CudaSymbols<T>::gemm;
  const auto function = blas_function<CublasGemm<T>>(queue, symbol);
  check(function(queue.blas(), cublas_op(op_a), cublas_op(op_b), blas_int(c.rows), blas_int(c.cols), blas_int(op_cols(op_a, a.rows, a.cols)), &alpha,
                 a.data, blas_ld(a.ld), b.data, blas_ld(b.ld), &beta, c.data, blas_ld(c.ld)),
        symbol);
}

template <Scalar T>
void herk(CudaQueue& queue, Uplo uplo, Op op, Real<T> alpha, std::type_identity_t<MatrixView<const T>> a, Real<T> beta, MatrixView<T> c) {
  if (c.empty()) return;
  constexpr const char* symbol = CudaSymbols<T>::herk;
  const auto function = blas_function<CublasHerk<T>>(queue, symbol);
  check(function(queue.blas(), cublas_uplo(uplo), cublas_op(op), blas_int(c.rows), blas_int(op_cols(op, a.rows, a.cols)), &alpha, a.data,
                 blas_ld(a.ld), &beta, c.data, blas_ld(c.ld)),
        symbol);
}

template <Scalar T>
void syrk(CudaQueue& queue, Uplo uplo, Op op, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a, std::type_identity_t<T> beta,
          MatrixView<T> c) {
  if (c.empty()) return;
  constexpr const char* symbol = CudaSymbols<T>::syrk;
  const auto function = blas_function<CublasSyrk<T>>(queue, symbol);
  check(function(queue.blas(), cublas_uplo(uplo), cublas_op(op), blas_int(c.rows), blas_int(op_cols(op, a.rows, a.cols)), &alpha, a.data,
                 blas_ld(a.ld), &beta, c.data, blas_ld(c.ld)),
        symbol);
}

template <Scalar T>
void trsm(CudaQueue& queue, Side side, Uplo uplo, Op op, Diag diag, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          MatrixView<T> b) {
  if (b.empty()) return;
  constexpr const char* symbol = CudaSymbols<T>::trsm;
  const auto function = blas_function<CublasTrsm<T>>(queue, symbol);
  check(function(queue.blas(), side == Side::left ? kCublasLeft : kCublasRight, cublas_uplo(uplo), cublas_op(op),
                 diag == Diag::unit ? kCublasUnit : kCublasNonUnit, blas_int(b.rows), blas_int(b.cols), &alpha, a.data, blas_ld(a.ld), b.data,
                 blas_ld(b.ld)),
        symbol);
}

template <Scalar T>
void potrf(CudaQueue& queue, Uplo uplo, MatrixView<T> a, std::function<void(std::size_t)> failed) {
  if (a.empty()) return;
  constexpr const char* symbol = CudaSymbols<T>::potrf;
  const auto size = solver_function<CusolverPotrfSize<T>>(queue, CudaSymbols<T>::potrf_size);
  const auto function = solver_function<CusolverPotrf<T>>(queue, symbol);
  void* const solver = queue.solver();
  const int n = blas_int(a.rows), ld = blas_ld(a.ld);
  int count = 0;
  check(size(solver, cublas_uplo(uplo), n, a.data, ld, &count), CudaSymbols<T>::potrf_size);
  // `info` first, then the workspace, which is aligned as memory of the device is.
  constexpr std::size_t before = 256;
  char* const scratch = static_cast<char*>(queue.scratch(before + static_cast<std::size_t>(count) * sizeof(T)));
  int* const info = reinterpret_cast<int*>(scratch);
  check(function(solver, cublas_uplo(uplo), n, a.data, ld, reinterpret_cast<T*>(scratch + before), count, info), symbol);
  queue.read_int(info, [failed = std::move(failed)](int order) {
    if (order > 0) failed(static_cast<std::size_t>(order));
  });
}

#define INSTANTIATE(T)                                                                                                         \
  template void gemm<T>(CudaQueue&, Op, Op, T, MatrixView<const T>, MatrixView<const T>, T, MatrixView<T>);                     \
  template void herk<T>(CudaQueue&, Uplo, Op, Real<T>, MatrixView<const T>, Real<T>, MatrixView<T>);                            \
  template void syrk<T>(CudaQueue&, Uplo, Op, T, MatrixView<const T>, T, MatrixView<T>);                                        \
  template void trsm<T>(CudaQueue&, Side, Uplo, Op, Diag, T, MatrixView<const T>, MatrixView<T>);                               \
  template void potrf<T>(CudaQueue&, Uplo, MatrixView<T>, std::function<void(std::size_t)>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels::cuda
