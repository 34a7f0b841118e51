// tandem/linalg/kernels/cuda.hpp: tile kernels on CUDA devices, by cuBLAS and cuSOLVER; exchanges of rows, by kernels
// of our own.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <type_traits>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"
#include "tandem/runtime/device/cuda/cuda_queue.hpp"

namespace tandem::linalg::kernels::cuda {

// These functions post to the queue what the kernels of these names do on cores. Views point into the device's memory.
// They throw DeviceError when a library is missing or takes no work.

/// C := alpha op(A) op(B) + beta C.
template <Scalar T>
void gemm(CudaQueue& queue, Op op_a, Op op_b, std::type_identity_t<T> alpha,
          std::type_identity_t<MatrixView<const T>> a, std::type_identity_t<MatrixView<const T>> b,
          std::type_identity_t<T> beta, MatrixView<T> c);
/// C := alpha A A^H + beta C, or with A^H A.
template <Scalar T>
void herk(CudaQueue& queue, Uplo uplo, Op op, Real<T> alpha, std::type_identity_t<MatrixView<const T>> a, Real<T> beta,
          MatrixView<T> c);
/// C := alpha A A^T + beta C, or with A^T A.
template <Scalar T>
void syrk(CudaQueue& queue, Uplo uplo, Op op, std::type_identity_t<T> alpha,
          std::type_identity_t<MatrixView<const T>> a, std::type_identity_t<T> beta, MatrixView<T> c);
/// B := alpha op(A)^-1 B, or B op(A)^-1.
template <Scalar T>
void trsm(CudaQueue& queue, Side side, Uplo uplo, Op op, Diag diag, std::type_identity_t<T> alpha,
          std::type_identity_t<MatrixView<const T>> a, MatrixView<T> b);
/// A = L L^H or U^H U. `failed` is called with the order of the first minor that is not positive definite, if there is
/// one, before the task's end.
template <Scalar T>
void potrf(CudaQueue& queue, Uplo uplo, MatrixView<T> a, std::function<void(std::size_t)> failed);
/// A = L U without pivoting. `failed` is called with the number of a pivot that is zero, counted from 1, if there is
/// one, before the task's end.
template <Scalar T>
void getrf_nopiv(CudaQueue& queue, MatrixView<T> a, std::function<void(std::size_t)> failed);
/// For t = 0, 1, ...: exchanges rows t and interchanges[t] of A.
template <Scalar T>
void laswp(CudaQueue& queue, std::span<const std::size_t> interchanges, MatrixView<T> a);
/// For each t: exchanges row t of A with row partners[t] - first of B, if B has that row.
template <Scalar T>
void exchange_rows(CudaQueue& queue, std::span<const std::size_t> partners, std::size_t first, MatrixView<T> a,
                   MatrixView<T> b);
/// C := op(Q) C with the Q that geqrt left in V and T.
template <Scalar T>
void unmqr(CudaQueue& queue, Op op, std::type_identity_t<MatrixView<const T>> v,
           std::type_identity_t<MatrixView<const T>> t, MatrixView<T> c);
/// [A; B] := op(Q) [A; B] with the Q that tpqrt left in V and T.
template <Scalar T>
void tpmqrt(CudaQueue& queue, Op op, std::type_identity_t<MatrixView<const T>> v,
            std::type_identity_t<MatrixView<const T>> t, MatrixView<T> a, MatrixView<T> b);

}  // namespace tandem::linalg::kernels::cuda
