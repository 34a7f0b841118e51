// tandem/linalg/kernels/packed_gemm.cpp: three loops over blocks for the caches around sums in registers.
//
// The scheme is that of Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34(3), 2008,
// with the two innermost loops of Van Zee and van de Geijn, BLIS, ACM TOMS 41(3), 2015:
//
//   for blocks L of the terms, J of C's columns:         B_LJ packed, for L2 (what does not fit passes once for each I)
//     for blocks I of C's rows:                          A_IL packed, for L2
//       for strips j of 8 columns in J:                  8 columns of B_LJ stay in L1
//         for panels i of at most 3 vectors in I:        C_ij := alpha A_iL B_Lj + beta C_ij, in 24 registers
//
// A tile of order 512 in double is why the operands are copied: its columns are 4 KiB apart, which is one set of L1.
#include "tandem/linalg/kernels/packed_gemm.hpp"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "tandem/base/large_memory.hpp"
#include "tandem/linalg/kernels/blas.hpp"

#if defined(__x86_64__)
#define TANDEM_PACKED_GEMM 1
#endif

namespace tandem::linalg::internal {

#ifdef TANDEM_PACKED_GEMM
namespace {

#define TANDEM_AVX512 [[gnu::target("avx512f,avx512vl,avx512dq,avx2,fma")]]

/// `count` elements in a register, and at any address in memory.
template <class R, int count>
struct Elements {
  typedef R Type __attribute__((vector_size(count * sizeof(R))));
  typedef R InMemory __attribute__((vector_size(count * sizeof(R)), aligned(alignof(R)), may_alias));
};

template <class R>
constexpr int lanes = 64 / sizeof(R);

constexpr int panel_vectors = 3;  // of rows
constexpr int strip_columns =
    8;  // with 3 vectors of rows: 24 sums, which leaves registers for 3 vectors of A and one of B
constexpr std::size_t rows_max = 192;
constexpr std::size_t columns_max = 512;
template <class R>
constexpr std::size_t terms_max = 2560 / sizeof(R);  // a strip of B takes 20 KiB

constexpr std::size_t scratch_bytes = std::size_t{2} << 20;  // one huge page
static_assert((rows_max + columns_max) * terms_max<double> * sizeof(double) <= scratch_bytes);

/// A factor as `rows` x `terms` elements: op(A), or op(B)^T.
template <class R>
struct Factor {
  const R* data;
  std::size_t ld;
  bool transposed;  ///< element (i, l) is data[l + i ld] and not data[i + l ld]
  std::size_t rows;
  std::size_t terms;

  const R& operator()(std::size_t i, std::size_t l) const noexcept {
    return transposed ? data[l + i * ld] : data[i + l * ld];
  }
  Factor block(std::size_t i, std::size_t l, std::size_t m, std::size_t k) const noexcept {
    return {&(*this)(i, l), ld, transposed, m, k};
  }
};

/// `rows` in chunks of `chunk`, and these in panels of at most `width_max` chunks, as equal as possible: 4 chunks are 2
/// + 2 and not 3 + 1, since narrow panels are slow.
struct Panels {
  Panels(std::size_t rows, std::size_t chunk, std::size_t width_max) noexcept
      : chunks((rows + chunk - 1) / chunk), count((chunks + width_max - 1) / width_max) {}
  std::size_t first_chunk(std::size_t panel) const noexcept { return chunks * panel / count; }

  std::size_t chunks;
  std::size_t count;
};

/// x := x^T for the n x n elements of n vectors: swaps the off-diagonal quarters of all blocks of order 2 step, then
/// those of larger blocks.
template <int step, class V, int n, int... e>
[[gnu::always_inline]] inline void transpose(V (&x)[n], std::integer_sequence<int, e...> elements) noexcept {
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) {
    if ((i & step) != 0) continue;
    const V upper = x[i], lower = x[i + step];
    x[i] = __builtin_shufflevector(upper, lower, ((e & step) == 0 ? e : n + e - step)...);
    x[i + step] = __builtin_shufflevector(upper, lower, ((e & step) == 0 ? e + step : n + e)...);
  }
  if constexpr (2 * step < n) transpose<2 * step>(x, elements);
}

/// Copies the first `rows` rows of a chunk for terms [l, end), the others 0; consecutive terms of `to` are `to_ld`
/// apart.
template <class R, int chunk>
[[gnu::always_inline]] inline void pack_chunk(const Factor<R>& from, std::size_t i, std::size_t rows, std::size_t l,
                                              std::size_t end, R* to, std::size_t to_ld) noexcept {
  using V = typename Elements<R, chunk>::Type;
  using InMemory = typename Elements<R, chunk>::InMemory;
  if (rows == chunk && !from.transposed) {
    for (; l < end; ++l, to += to_ld)
      *reinterpret_cast<InMemory*>(to) = *reinterpret_cast<const InMemory*>(&from(i, l));
  } else if (rows == chunk) {
    for (; l + chunk <= end; l += chunk, to += chunk * to_ld) {
      V x[chunk];
#pragma GCC unroll 16
      for (int r = 0; r < chunk; ++r) x[r] = *reinterpret_cast<const InMemory*>(&from(i + std::size_t(r), l));
      transpose<1>(x, std::make_integer_sequence<int, chunk>());
#pragma GCC unroll 16
      for (int t = 0; t < chunk; ++t) *reinterpret_cast<InMemory*>(to + std::size_t(t) * to_ld) = x[t];
    }
  }
  for (; l < end; ++l, to += to_ld) {
    for (std::size_t r = 0; r < rows; ++r) to[r] = from(i + r, l);
    std::fill(to + rows, to + chunk, R(0));
  }
}

/// Copies panel after panel, each with its rows of the first term, then of the second, and so on. It takes a few terms
/// at a time, all their rows: so columns of the source are read in long pieces.
template <class R, int chunk, int width_max>
TANDEM_AVX512 void pack(const Factor<R>& from, R* to) noexcept {
  const Panels panels(from.rows, chunk, width_max);
  constexpr std::size_t terms = 16;
  for (std::size_t l = 0; l < from.terms; l += terms) {
    const std::size_t end = std::min(l + terms, from.terms);
    for (std::size_t p = 0; p < panels.count; ++p) {
      const std::size_t first = panels.first_chunk(p), last = panels.first_chunk(p + 1);
      const std::size_t width = (last - first) * chunk;
      R* const panel = to + first * chunk * from.terms + l * width;
      for (std::size_t at = first; at < last; ++at)
        pack_chunk<R, chunk>(from, at * chunk, std::min<std::size_t>(chunk, from.rows - at * chunk), l, end,
                             panel + (at - first) * chunk, width);
    }
  }
}

/// How sums are used: C := alpha sums + beta C.
template <class R>
struct Update {
  R alpha;
  R beta;
};

/// Computes C_ij from a packed panel of A of nv vectors and a packed strip of B. C is prefetched first and touched
/// last.
template <class R, int nv>
TANDEM_AVX512 void multiply_panel(std::size_t terms, const R* a, const R* b, Update<R> update, R* c,
                                  std::size_t ldc) noexcept {
  using V = typename Elements<R, lanes<R>>::Type;
  using InMemory = typename Elements<R, lanes<R>>::InMemory;
  constexpr int n = strip_columns, width = lanes<R>;
  V sum[n][nv] = {};
#pragma GCC unroll 8
  for (int j = 0; j < n; ++j)
    for (int v = 0; v < nv; ++v) __builtin_prefetch(c + v * width + std::size_t(j) * ldc, 1, 3);
#pragma GCC unroll 4
  for (std::size_t l = 0; l < terms; ++l) {
    V al[nv];
    for (int v = 0; v < nv; ++v) al[v] = *reinterpret_cast<const InMemory*>(a + l * nv * width + v * width);
    for (int v = 0; v < nv; ++v) __builtin_prefetch(a + (l + 8) * nv * width + v * width, 0, 3);
#pragma GCC unroll 8
    for (int j = 0; j < n; ++j)
      for (int v = 0; v < nv; ++v) sum[j][v] += al[v] * b[l * n + j];
  }
#pragma GCC unroll 8
  for (int j = 0; j < n; ++j)
    for (int v = 0; v < nv; ++v) {
      InMemory* const to = reinterpret_cast<InMemory*>(c + v * width + std::size_t(j) * ldc);
      const V product = sum[j][v] * update.alpha;
      *to = update.beta == R(0) ? product : update.beta == R(1) ? *to + product : *to * update.beta + product;
    }
}

template <class R>
void multiply_panel(std::size_t vectors, std::size_t terms, const R* a, const R* b, Update<R> update, R* c,
                    std::size_t ldc) noexcept {
  switch (vectors) {
    case 1: return multiply_panel<R, 1>(terms, a, b, update, c, ldc);
    case 2: return multiply_panel<R, 2>(terms, a, b, update, c, ldc);
    default: return multiply_panel<R, panel_vectors>(terms, a, b, update, c, ldc);
  }
}

/// The updated elements of C: all, or a triangle of a square of which C is a block.
struct Part {
  Uplo uplo;
  std::size_t row;     ///< of C's first element in the square
  std::size_t column;

  Part block(std::size_t i, std::size_t j) const noexcept { return {uplo, row + i, column + j}; }
  bool holds(std::size_t i, std::size_t j) const noexcept {
    return uplo == Uplo::general || (uplo == Uplo::lower ? row + i >= column + j : row + i <= column + j);
  }
  /// Which of its first m elements column j contains: [first, second).
  std::pair<std::size_t, std::size_t> rows_of_column(std::size_t j, std::size_t m) const noexcept {
    if (uplo == Uplo::general) return {0, m};
    const std::size_t diagonal = column + j > row ? std::min(column + j - row, m) : 0;
    if (uplo == Uplo::lower) return {diagonal, m};
    return {0, column + j < row ? 0 : std::min(diagonal + 1, m)};
  }
  // The elements of an m x n block nearest to the triangle's inside and farthest from it decide.
  bool holds_any(std::size_t m, std::size_t n) const noexcept {
    return uplo == Uplo::lower ? holds(m - 1, 0) : holds(0, n - 1);
  }
  bool holds_all(std::size_t m, std::size_t n) const noexcept {
    return uplo == Uplo::lower ? holds(0, n - 1) : holds(m - 1, 0);
  }
};

/// Like `multiply` for a panel or a strip beyond an edge of C or of its part: through a copy of the product.
template <class R>
TANDEM_AVX512 void multiply_edge(std::size_t vectors, std::size_t terms, const R* a, const R* b, Update<R> update,
                                 MatrixView<R> c, Part part) noexcept {
  alignas(64) R product[strip_columns * panel_vectors * lanes<R>];
  const std::size_t ld = vectors * lanes<R>;
  multiply_panel(vectors, terms, a, b, {update.alpha, R(0)}, product, ld);
  for (std::size_t j = 0; j < c.cols; ++j) {
    const auto [first, last] = part.rows_of_column(j, c.rows);
    R* const to = &c(0, j);
    const R* const from = product + j * ld;
    if (update.beta == R(0)) {
      std::copy(from + first, from + last, to + first);
    } else {
      for (std::size_t i = first; i < last; ++i) to[i] = to[i] * update.beta + from[i];
    }
  }
}

/// Computes C_IJ from a packed block of A and one of B.
template <class R>
void multiply_block(std::size_t terms, const R* a, const R* b, Update<R> update, MatrixView<R> c, Part part) noexcept {
  const Panels panels(c.rows, lanes<R>, panel_vectors);
  for (std::size_t j = 0; j < c.cols; j += strip_columns) {
    const std::size_t columns = std::min<std::size_t>(strip_columns, c.cols - j);
    for (std::size_t p = 0; p < panels.count; ++p) {
      const std::size_t first = panels.first_chunk(p), vectors = panels.first_chunk(p + 1) - first;
      const std::size_t i = first * lanes<R>;
      const std::size_t rows = std::min(vectors * lanes<R>, c.rows - i);
      const Part here = part.block(i, j);
      if (!here.holds_any(rows, columns)) continue;
      const R* const panel = a + i * terms;
      const R* const strip = b + j * terms;
      if (columns == strip_columns && rows == vectors * lanes<R> && here.holds_all(rows, columns)) {
        multiply_panel(vectors, terms, panel, strip, update, &c(i, j), c.ld);
      } else {
        multiply_edge(vectors, terms, panel, strip, update, c.block(i, j, rows, columns), here);
      }
    }
  }
}

/// `size` in equal parts of at most `limit`, whole vectors each: 256 in parts of at most 192 is 128 + 128 and not 192 +
/// 64.
std::size_t even_part(std::size_t size, std::size_t limit) noexcept {
  const std::size_t parts = (size + limit - 1) / limit;
  return std::min(limit, ((size + parts - 1) / parts + 15) / 16 * 16);
}

std::byte* scratch() {
  static thread_local std::unique_ptr<std::byte, base::FreeLarge> memory;
  if (memory == nullptr) memory = base::allocate_large(scratch_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory.get();
}

/// A part of C := alpha A B^T + beta C for factors with equal numbers of terms.
template <class R>
void multiply(const Factor<R>& left, const Factor<R>& right, R alpha, R beta, MatrixView<R> c, Uplo uplo) {
  R* const packed_a = reinterpret_cast<R*>(scratch());
  R* const packed_b = packed_a + rows_max * terms_max<R>;
  const std::size_t step_k = even_part(left.terms, terms_max<R>), step_m = even_part(c.rows, rows_max);
  for (std::size_t l = 0; l < left.terms; l += step_k) {
    const std::size_t k = std::min(step_k, left.terms - l);
    const Update<R> update{alpha, l == 0 ? beta : R(1)};
    for (std::size_t j = 0; j < c.cols; j += columns_max) {
      const std::size_t n = std::min(columns_max, c.cols - j);
      pack<R, strip_columns, 1>(right.block(j, l, n, k), packed_b);
      for (std::size_t i = 0; i < c.rows; i += step_m) {
        const std::size_t m = std::min(step_m, c.rows - i);
        const Part part{uplo, i, j};
        if (!part.holds_any(m, n)) continue;
        pack<R, lanes<R>, panel_vectors>(left.block(i, l, m, k), packed_a);
        multiply_block(k, packed_a, packed_b, update, c.block(i, j, m, n), part);
      }
    }
  }
}

}  // namespace

bool has_packed_gemm() noexcept {
  static const bool has = [] {
    __builtin_cpu_init();
    return __builtin_cpu_is("intel") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq");
  }();
  return has;
}

template <class R>
void packed_gemm(Op op_a, Op op_b, R alpha, MatrixView<const R> a, MatrixView<const R> b, R beta, MatrixView<R> c) {
  const std::size_t terms = op_cols(op_a, a.rows, a.cols);
  TANDEM_DEBUG_ASSERT(has_packed_gemm() && alpha != R(0) && terms > 0);
  multiply(Factor<R>{a.data, a.ld, op_a != Op::no_trans, c.rows, terms},
           Factor<R>{b.data, b.ld, op_b == Op::no_trans, c.cols, terms}, alpha, beta, c, Uplo::general);
}

template <class R>
void packed_syrk(Uplo uplo, Op op, R alpha, MatrixView<const R> a, R beta, MatrixView<R> c) {
  const std::size_t terms = op_cols(op, a.rows, a.cols);
  TANDEM_DEBUG_ASSERT(has_packed_gemm() && alpha != R(0) && terms > 0 && uplo != Uplo::general);
  const Factor<R> factor{a.data, a.ld, op != Op::no_trans, c.rows, terms};
  multiply(factor, factor, alpha, beta, c, uplo);
}

#undef TANDEM_AVX512

#else

bool has_packed_gemm() noexcept { return false; }
template <class R>
void packed_gemm(Op, Op, R, MatrixView<const R>, MatrixView<const R>, R, MatrixView<R>) {
  TANDEM_ASSERT(false);
}
template <class R>
void packed_syrk(Uplo, Op, R, MatrixView<const R>, R, MatrixView<R>) {
  TANDEM_ASSERT(false);
}

#endif

#define INSTANTIATE(R)                                                                                      \
  template void packed_gemm<R>(Op, Op, R, MatrixView<const R>, MatrixView<const R>, R, MatrixView<R>);      \
  template void packed_syrk<R>(Uplo, Op, R, MatrixView<const R>, R, MatrixView<R>);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

}  // namespace tandem::linalg::internal
