// tandem/linalg/kernels/gemm.cpp: our own gemm or the BLAS's, which is called in blocks where that is faster.
#include "tandem/linalg/kernels/gemm.hpp"

#include <algorithm>

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/gemm_blocking.hpp"
#include "tandem/linalg/kernels/packed_gemm.hpp"

namespace tandem::linalg::kernels {
namespace {

using namespace internal;

template <Scalar T>
void multiply_whole(Op op_a, Op op_b, T alpha, MatrixView<const T> a, MatrixView<const T> b, T beta, MatrixView<T> c) {
  const std::size_t k = op_cols(op_a, a.rows, a.cols);
  blas_gemm(blas_op(op_a), blas_op(op_b), blas_int(c.rows), blas_int(c.cols), blas_int(k), alpha, a.data, blas_ld(a.ld),
            b.data, blas_ld(b.ld), beta, c.data, blas_ld(c.ld));
}

/// `size` in equal parts of at most `limit`, whole vectors each: 320 in parts of at most 256 is 160 + 160 and not 256 +
/// 64.
std::size_t even_part(std::size_t size, std::size_t limit) noexcept {
  const std::size_t parts = (size + limit - 1) / limit;
  return std::min(limit, ((size + parts - 1) / parts + 7) / 8 * 8);
}

/// Prefetches a block's cache lines for writing. The BLAS touches C last and in short columns, which no hardware
/// foresees: it would wait for a block from main memory.
template <Scalar T>
void prefetch(MatrixView<T> block) noexcept {
  constexpr std::size_t line = 64 / sizeof(T);
  for (std::size_t j = 0; j < block.cols; ++j)
    for (std::size_t i = 0; i < block.rows; i += line) __builtin_prefetch(&block(i, j), 1, 2);
}

/// C_IJ := alpha sum_K A_IK B_KJ + beta C_IJ. A block of B stays in the near caches while blocks of A pass by, and the
/// next block of C is fetched during the present one. With cold tiles of C that gives 2 to 5 % more.
template <Scalar T>
void multiply_blocks(GemmBlocking limit, Op op_a, Op op_b, T alpha, MatrixView<const T> a, MatrixView<const T> b,
                     T beta, MatrixView<T> c) {
  const std::size_t depth = op_cols(op_a, a.rows, a.cols);
  const std::size_t step_k = even_part(depth, limit.k);
  for (std::size_t l = 0; l < depth; l += step_k) {
    const std::size_t k = std::min(step_k, depth - l);
    for (std::size_t j = 0; j < c.cols; j += limit.n) {
      const std::size_t n = std::min(limit.n, c.cols - j);
      const auto b_block = op_block(op_b, b, l, j, k, n);
      for (std::size_t i = 0; i < c.rows; i += limit.m) {
        const std::size_t m = std::min(limit.m, c.rows - i);
        const bool last_of_column = i + m == c.rows;
        const std::size_t next_i = last_of_column ? 0 : i + m, next_j = last_of_column ? j + n : j;
        if (next_j < c.cols)
          prefetch(c.block(next_i, next_j, std::min(limit.m, c.rows - next_i), std::min(limit.n, c.cols - next_j)));
        multiply_whole<T>(op_a, op_b, alpha, op_block(op_a, a, i, l, m, k), b_block, l == 0 ? beta : T(1),
                          c.block(i, j, m, n));
      }
    }
  }
}

}  // namespace

template <Scalar T>
void gemm(Op op_a, Op op_b, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          std::type_identity_t<MatrixView<const T>> b, std::type_identity_t<T> beta, MatrixView<T> c) {
  const std::size_t k = op_cols(op_a, a.rows, a.cols);
  TANDEM_DEBUG_ASSERT(op_rows(op_a, a.rows, a.cols) == c.rows);
  TANDEM_DEBUG_ASSERT(op_cols(op_b, b.rows, b.cols) == c.cols);
  TANDEM_DEBUG_ASSERT(op_rows(op_b, b.rows, b.cols) == k);
  if (c.empty()) return;
  if constexpr (!is_complex<T>) {
    if (has_packed_gemm() && worth_packing(c.rows, c.cols, k) && alpha != T(0))
      return packed_gemm<T>(op_a, op_b, alpha, a, b, beta, c);
  }
  const GemmBlocking blocking = gemm_blocking<T>(op_a, op_b);
  const bool fits = c.rows <= blocking.m && c.cols <= blocking.n && k <= blocking.k;
  if (blocking.whole() || fits || k == 0) {
    multiply_whole<T>(op_a, op_b, alpha, a, b, beta, c);
  } else {
    multiply_blocks<T>(blocking, op_a, op_b, alpha, a, b, beta, c);
  }
}

#define INSTANTIATE(T) template void gemm<T>(Op, Op, T, MatrixView<const T>, MatrixView<const T>, T, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
