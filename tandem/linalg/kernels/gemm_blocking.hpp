// tandem/linalg/kernels/gemm_blocking.hpp: when a tile's gemm is faster in blocks that the BLAS multiplies without
// packing.
#pragma once

#include <cstddef>

#include "tandem/linalg/types.hpp"

namespace tandem::linalg::internal {

/// Largest m, n and k of a block; zeros: leave the product whole.
struct GemmBlocking {
  std::size_t m = 0;
  std::size_t n = 0;
  std::size_t k = 0;

  bool whole() const noexcept { return m == 0; }
};

/// OpenBLAS's AVX-512 kernels multiply s and d matrices of m n k <= 10^6 straight from where they lie, and larger ones
/// through packed copies, which for a tile costs a tenth of the time. Blocks below that limit give, on one core of Zen
/// 4 with 0.3.21 and tiles of 256, 320 and 512 (GFlop/s, C += A B^T in d): 58, 58 and 56 instead of 52, 53 and 51; in
/// s: 116 instead of 106. Pure: `core` and `config` are `kernels` and `version` of a BlasLibrary. Whole for other
/// libraries, older versions, other cores and complex types, whose small kernels are no faster or do not exist.
template <Scalar T>
GemmBlocking choose_gemm_blocking(const char* core, const char* config, Op op_a, Op op_b) noexcept;

/// The choice for the BLAS that this program runs with: looked up once, then a load. The choice is a property of the
/// library and never of a timing, so that results are the same from run to run.
template <Scalar T>
GemmBlocking gemm_blocking(Op op_a, Op op_b) noexcept;

}  // namespace tandem::linalg::internal
