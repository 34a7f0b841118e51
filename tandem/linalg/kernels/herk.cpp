// tandem/linalg/kernels/herk.cpp: recursive rank-k updates: the square below (or beside) the diagonal is gemm's.
//
// With A = [A1; A2] and C's lower triangle in halves:
//   C11 := alpha A1 A1^H + beta C11,   C21 := alpha A2 A1^H + beta C21,   C22 := alpha A2 A2^H + beta C22.
// A leaf computes its whole square into a scratch tile and adds one triangle of it: half of that work is lost, but gemm
// is more than twice as fast as OpenBLAS 0.3.21's syrk at that order, and only leaf/n of the work is in leaves.
#include "tandem/linalg/kernels/herk.hpp"

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/gemm.hpp"
#include "tandem/linalg/kernels/packed_gemm.hpp"

namespace tandem::linalg::kernels {
namespace {

using namespace internal;

constexpr std::size_t leaf_order = 32;

/// One of syrk and herk: `left` and `right` are the ops of the two factors of op(A) op(A)^T or op(A) op(A)^H.
template <Scalar T>
struct RankUpdate {
  Uplo uplo;
  Op left;
  Op right;
  T alpha;
  T beta;
  bool hermitian;
};

/// Rows [at, at + count) of op(A), as stored.
template <Scalar T>
MatrixView<const T> rows_of(Op op, MatrixView<const T> a, std::size_t at, std::size_t count) noexcept {
  return op_block(op, a, at, 0, count, op_cols(op, a.rows, a.cols));
}

template <Scalar T>
void update_leaf(const RankUpdate<T>& u, MatrixView<const T> a, MatrixView<T> c) {
  alignas(64) T storage[leaf_order * leaf_order];
  const MatrixView<T> product{storage, c.rows, c.rows, c.rows};
  gemm<T>(u.left, u.right, u.alpha, a, a, T(0), product);
  const bool lower = u.uplo == Uplo::lower;
  for (std::size_t j = 0; j < c.cols; ++j) {
    for (std::size_t i = lower ? j : 0; i < (lower ? c.rows : j + 1); ++i) {
      c(i, j) = u.beta == T(0) ? product(i, j) : product(i, j) + multiply(u.beta, c(i, j));
    }
    if (u.hermitian) c(j, j) = T(real_part(c(j, j)));
  }
}

template <Scalar T>
void update(const RankUpdate<T>& u, MatrixView<const T> a, MatrixView<T> c) {
  const std::size_t n = c.rows;
  if (n <= leaf_order) return update_leaf(u, a, c);
  const std::size_t n1 = (n / 2 + leaf_order - 1) / leaf_order * leaf_order;
  const std::size_t n2 = n - n1;
  const auto a1 = rows_of(u.left, a, 0, n1), a2 = rows_of(u.left, a, n1, n2);
  update(u, a1, c.block(0, 0, n1, n1));
  if (u.uplo == Uplo::lower) {
    gemm<T>(u.left, u.right, u.alpha, a2, a1, u.beta, c.block(n1, 0, n2, n1));
  } else {
    gemm<T>(u.left, u.right, u.alpha, a1, a2, u.beta, c.block(0, n1, n1, n2));
  }
  update(u, a2, c.block(n1, n1, n2, n2));
}

/// Makes the whole update at once if possible, and returns whether it did. In a triangle a copied element serves half
/// as many sums as in a square.
template <Scalar T>
bool update_packed(Uplo uplo, Op op, T alpha, MatrixView<const T> a, T beta, MatrixView<T> c) {
  if constexpr (!is_complex<T>) {
    if (has_packed_gemm() && worth_packing(c.rows / 2, c.cols / 2, op_cols(op, a.rows, a.cols)) && alpha != T(0)) {
      packed_syrk<T>(uplo, op, alpha, a, beta, c);
      return true;
    }
  }
  return false;
}

}  // namespace

template <Scalar T>
void herk(Uplo uplo, Op op, Real<T> alpha, std::type_identity_t<MatrixView<const T>> a, Real<T> beta, MatrixView<T> c) {
  TANDEM_DEBUG_ASSERT(uplo != Uplo::general && c.rows == c.cols && op_rows(op, a.rows, a.cols) == c.rows);
  TANDEM_DEBUG_ASSERT(!is_complex<T> || op != Op::trans);
  if (c.empty() || update_packed<T>(uplo, op, T(alpha), a, T(beta), c)) return;
  const bool plain = op == Op::no_trans;
  const Op transposed = is_complex<T> ? Op::conj_trans : Op::trans;
  update(RankUpdate<T>{uplo, plain ? Op::no_trans : transposed, plain ? transposed : Op::no_trans, T(alpha), T(beta),
                       is_complex<T>},
         a, c);
}

template <Scalar T>
void syrk(Uplo uplo, Op op, std::type_identity_t<T> alpha, std::type_identity_t<MatrixView<const T>> a,
          std::type_identity_t<T> beta, MatrixView<T> c) {
  TANDEM_DEBUG_ASSERT(uplo != Uplo::general && c.rows == c.cols && op_rows(op, a.rows, a.cols) == c.rows);
  TANDEM_DEBUG_ASSERT(!is_complex<T> || op != Op::conj_trans);
  if (c.empty() || update_packed<T>(uplo, op, T(alpha), a, T(beta), c)) return;
  const bool plain = op == Op::no_trans;
  update(RankUpdate<T>{uplo, plain ? Op::no_trans : Op::trans, plain ? Op::trans : Op::no_trans, alpha, beta, false}, a,
         c);
}

#define INSTANTIATE(T)                                                                        \
  template void herk<T>(Uplo, Op, Real<T>, MatrixView<const T>, Real<T>, MatrixView<T>);      \
  template void syrk<T>(Uplo, Op, T, MatrixView<const T>, T, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
