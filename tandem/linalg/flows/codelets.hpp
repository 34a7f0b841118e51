// tandem/linalg/flows/codelets.hpp: the tile kernels as codelets. Private to the flows.
#pragma once

#include <utility>

#include "tandem/api/codelet.hpp"
#include "tandem/api/cuda_kernel.hpp"
#include "tandem/linalg/flows/info.hpp"
#include "tandem/linalg/kernels/cuda.hpp"
#include "tandem/linalg/kernels/gemm.hpp"
#include "tandem/linalg/kernels/hemm.hpp"
#include "tandem/linalg/kernels/herk.hpp"
#include "tandem/linalg/kernels/lacpy.hpp"
#include "tandem/linalg/kernels/potrf.hpp"
#include "tandem/linalg/kernels/trsm.hpp"
#include "tandem/linalg/types.hpp"

namespace tandem::linalg::internal {

// Codelets are immutable and shared by all runtimes; each is built at its first use. Tasks with a failed `info` do
// nothing.

/// Makes the codelet report how many operations its tasks take, in real arithmetic.
void count_operations(runtime::CodeletCore& codelet, bool complex);

template <Scalar T, class Kernel>
Codelet<Kernel> counted(const char* name, Kernel kernel) {
  Codelet<Kernel> codelet(name, std::move(kernel));
  count_operations(*codelet.core(), is_complex<T>);
  return codelet;
}

/// The `info` of flows that do not depend on a factorisation.
inline constexpr const Info* no_info = nullptr;

inline bool skipped(const Info* info) noexcept { return info != nullptr && info->failed(); }

// Products and Cholesky go to CUDA devices where there are any.

template <Scalar T>
const auto& gemm_codelet() {
  static const auto codelet = counted<T>("gemm",
                                         [](Op op_a, Op op_b, T alpha, MatrixView<const T> a, MatrixView<const T> b,
                                            T beta, MatrixView<T> c, const Info* info) {
                                           if (!skipped(info)) kernels::gemm(op_a, op_b, alpha, a, b, beta, c);
                                         })
                                  .cuda([](CudaQueue& queue, Op op_a, Op op_b, T alpha, MatrixView<const T> a,
                                           MatrixView<const T> b, T beta, MatrixView<T> c, const Info* info) {
                                    if (!skipped(info)) kernels::cuda::gemm(queue, op_a, op_b, alpha, a, b, beta, c);
                                  })
                                  .prefer_devices();
  return codelet;
}

template <Scalar T>
const auto& trsm_codelet() {
  static const auto codelet = counted<T>("trsm",
                                         [](Side side, Uplo uplo, Op op, Diag diag, T alpha, MatrixView<const T> a,
                                            MatrixView<T> b, const Info* info) {
                                           if (!skipped(info)) kernels::trsm(side, uplo, op, diag, alpha, a, b);
                                         })
                                  .cuda([](CudaQueue& queue, Side side, Uplo uplo, Op op, Diag diag, T alpha,
                                           MatrixView<const T> a, MatrixView<T> b, const Info* info) {
                                    if (!skipped(info)) kernels::cuda::trsm(queue, side, uplo, op, diag, alpha, a, b);
                                  })
                                  .prefer_devices();
  return codelet;
}

template <Scalar T>
const auto& herk_codelet() {
  static const auto codelet = counted<T>("herk",
                                         [](Uplo uplo, Op op, Real<T> alpha, MatrixView<const T> a, Real<T> beta,
                                            MatrixView<T> c, const Info* info) {
                                           if (!skipped(info)) kernels::herk(uplo, op, alpha, a, beta, c);
                                         })
                                  .cuda([](CudaQueue& queue, Uplo uplo, Op op, Real<T> alpha, MatrixView<const T> a,
                                           Real<T> beta, MatrixView<T> c, const Info* info) {
                                    if (!skipped(info)) kernels::cuda::herk(queue, uplo, op, alpha, a, beta, c);
                                  })
                                  .prefer_devices();
  return codelet;
}

template <Scalar T>
const auto& syrk_codelet() {
  static const auto codelet = counted<T>("syrk", [](Uplo uplo, Op op, T alpha, MatrixView<const T> a, T beta,
                                                    MatrixView<T> c) {
    kernels::syrk(uplo, op, alpha, a, beta, c);
  }).cuda([](CudaQueue& queue, Uplo uplo, Op op, T alpha, MatrixView<const T> a, T beta, MatrixView<T> c) {
    kernels::cuda::syrk(queue, uplo, op, alpha, a, beta, c);
  }).prefer_devices();
  return codelet;
}

template <Scalar T>
const auto& hemm_codelet() {
  static const Codelet codelet("hemm", [](Uplo uplo, T alpha, MatrixView<const T> a, MatrixView<const T> b, T beta,
                                          MatrixView<T> c) { kernels::hemm(uplo, alpha, a, b, beta, c); });
  return codelet;
}

/// Factorises the diagonal tile whose first row is row `first` of the matrix.
template <Scalar T>
const auto& potrf_codelet() {
  static const auto codelet = counted<T>("potrf", [](Uplo uplo, std::size_t first, MatrixView<T> a, Info* info) {
    if (skipped(info)) return;
    if (const std::size_t order = kernels::potrf(uplo, a); order != 0) info->fail(first + order);
  }).cuda([](CudaQueue& queue, Uplo uplo, std::size_t first, MatrixView<T> a, Info* info) {
    if (!skipped(info)) kernels::cuda::potrf(queue, uplo, a, [first, info](std::size_t order) { info->fail(first + order); });
  }).prefer_devices();
  return codelet;
}

template <Scalar T>
const auto& lacpy_codelet() {
  static const Codelet codelet("lacpy",
                               [](Uplo uplo, MatrixView<const T> a, MatrixView<T> b) { kernels::lacpy(uplo, a, b); });
  return codelet;
}

}  // namespace tandem::linalg::internal
