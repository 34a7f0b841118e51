// tandem/linalg/kernels/packed_gemm.hpp: products of our own for AVX-512, through packed copies of the operands.
#pragma once

#include <cstddef>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::internal {

/// Whether `packed_gemm` suits this processor: Intel's with AVX-512. On Zen 4, whose vector units are half as wide, the
/// BLAS's kernels in blocks (gemm_blocking.hpp) come near the peak; packed_gemm has not been measured there. Depends on
/// the processor and never on a timing, so that results are the same from run to run.
bool has_packed_gemm() noexcept;

/// Whether a product with C m x n and k terms gains by the copies: each element of A serves n sums and each of B m
/// sums, so that the copies cost as 1/m + 1/n.
constexpr bool worth_packing(std::size_t m, std::size_t n, std::size_t k) noexcept {
  return m * n >= 48 * (m + n) && k >= 16;
}

/// C := alpha op(A) op(B) + beta C, for alpha != 0 and k > 0; with beta = 0 C is not read. Requires has_packed_gemm().
/// Threads may multiply at the same time; each allocates 2 MiB for the copies at its first product, and throws
/// std::bad_alloc if that fails. The bits depend on the operands, the sizes and `beta`, not on addresses.
///
/// One core of a Sapphire Rapids, tiles of 256, 320 and 512 in d as cold as in a factorisation, C += A B^T in GFlop/s:
/// 79, 77 and 84, where OpenBLAS 0.3.21 gives 64, 63 and 70, and in blocks (gemm_blocking.hpp) 64, 60 and 46.
template <class R>
void packed_gemm(Op op_a, Op op_b, R alpha, MatrixView<const R> a, MatrixView<const R> b, R beta, MatrixView<R> c);

/// Like `packed_gemm`, for a triangle of C := alpha op(A) op(A)^T + beta C; the other triangle is neither read nor
/// written.
template <class R>
void packed_syrk(Uplo uplo, Op op, R alpha, MatrixView<const R> a, R beta, MatrixView<R> c);

}  // namespace tandem::linalg::internal
