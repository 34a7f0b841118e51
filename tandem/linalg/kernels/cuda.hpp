// tandem/linalg/kernels/cuda.hpp: the tile kernels of products and Cholesky on CUDA devices, by cuBLAS and cuSOLVER.
#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"
#include "tandem/runtime/device/cuda/cuda_queue.hpp"

namespace tandem::linalg::kernels::cuda {

// They post to the queue, and mean what the kernels of the same names for cores mean. Views point into the device's memory. They throw
// DeviceError when a library is missing or takes no work.

/// C := alpha op(A) op(B) + beta C.
template <Scalar T>
void gemm(CudaQueue& queue, Op op_a, Op op_b, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          std::type_identity_t<MatrixView<const T>> b, std::type_identity_t<T> beta, MatrixView<T> c);
/// C := alpha A A^H + beta C, or with A^H A.
template <Scalar T>
void herk(CudaQueue& queue, Uplo uplo, Op op, Real<T> alpha, std::type_identity_t<MatrixView<const T>> a, Real<T> beta, MatrixView<T> c);
/// C := alpha A A^T + beta C, or with A^T A.
template <Scalar T>
void syrk(CudaQueue& queue, Uplo uplo, Op op, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a, std::type_identity_t<T> beta,
          MatrixView<T> c);
/// B := alpha op(A)^-1 B, or B op(A)^-1.
template <Scalar T>
void trsm(CudaQueue& queue, Side side, Uplo uplo, Op op, Diag diag, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          MatrixView<T> b);
/// A = L L^H or U^H U. `failed` is called with the order of the first minor that is not positive definite, if there is one, before the task's end.
template <Scalar T>
void potrf(CudaQueue& queue, Uplo uplo, MatrixView<T> a, std::function<void(std::size_t)> failed);

}  // namespace tandem::linalg::kernels::cuda
