// tandem/linalg/flows/qr_codelets.hpp: the tile kernels of QR as codelets. Private to the flows.
#pragma once

#include "tandem/api/codelet.hpp"
#include "tandem/api/cuda_kernel.hpp"
#include "tandem/linalg/flows/codelets.hpp"
#include "tandem/linalg/kernels/cuda.hpp"
#include "tandem/linalg/kernels/geqrt.hpp"
#include "tandem/linalg/kernels/tpmqrt.hpp"
#include "tandem/linalg/kernels/tpqrt.hpp"
#include "tandem/linalg/kernels/unmqr.hpp"
#include "tandem/linalg/types.hpp"

namespace tandem::linalg::internal {

// Codelets are immutable and shared by all runtimes; each is built at its first use. Panels are factorised on cores,
// and CUDA devices take updates.

template <Scalar T>
const auto& geqrt_codelet() {
  static const auto codelet = counted<T>("geqrt", [](MatrixView<T> a, MatrixView<T> t) { kernels::geqrt(a, t); });
  return codelet;
}

template <Scalar T>
const auto& unmqr_codelet() {
  static const auto codelet = counted<T>("unmqr", [](Op op, MatrixView<const T> v, MatrixView<const T> t,
                                                     MatrixView<T> c) {
    kernels::unmqr(op, v, t, c);
  }).cuda([](CudaQueue& queue, Op op, MatrixView<const T> v, MatrixView<const T> t, MatrixView<T> c) {
    kernels::cuda::unmqr(queue, op, v, t, c);
  }).prefer_devices();
  return codelet;
}

template <Scalar T>
const auto& tpqrt_codelet() {
  static const auto codelet = counted<T>("tpqrt", [](MatrixView<T> a, MatrixView<T> b,
                                                     MatrixView<T> t) { kernels::tpqrt(a, b, t); });
  return codelet;
}

template <Scalar T>
const auto& tpmqrt_codelet() {
  static const auto codelet =
      counted<T>("tpmqrt", [](Op op, MatrixView<const T> v, MatrixView<const T> t, MatrixView<T> a,
                              MatrixView<T> b) { kernels::tpmqrt(op, v, t, a, b); })
          .cuda([](CudaQueue& queue, Op op, MatrixView<const T> v, MatrixView<const T> t, MatrixView<T> a,
                   MatrixView<T> b) { kernels::cuda::tpmqrt(queue, op, v, t, a, b); })
          .prefer_devices();
  return codelet;
}

}  // namespace tandem::linalg::internal
