// tandem/linalg/kernels/potrf.cpp: recursive Cholesky: two halves, joined by trsm and herk.
//
// With A = [A11 .; A21 A22]:  L11 L11^H = A11,  L21 := A21 L11^-H,  A22 := A22 - L21 L21^H,  L22 L22^H = A22.
// A leaf runs the textbook's loop (Golub and Van Loan, Matrix Computations, 4th ed., algorithm 4.2.2, by outer
// products).
#include "tandem/linalg/kernels/potrf.hpp"

#include <cmath>

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/herk.hpp"
#include "tandem/linalg/kernels/trsm.hpp"

namespace tandem::linalg::kernels {
namespace {

using namespace internal;

constexpr std::size_t unblocked_order = 32;

/// Factorises a small tile in scratch memory as L L^H; U is L^H, so an upper tile is read and written as its conjugate
/// transpose.
template <Scalar T>
std::size_t factorise_leaf(Uplo uplo, MatrixView<T> a) {
  alignas(64) T storage[unblocked_order * unblocked_order];
  const std::size_t n = a.rows;
  const MatrixView<T> l{storage, n, n, unblocked_order};
  const bool lower = uplo == Uplo::lower;
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = j; i < n; ++i) l(i, j) = lower ? a(i, j) : conj(a(j, i));

  std::size_t info = 0;
  for (std::size_t j = 0; j < n && info == 0; ++j) {
    const Real<T> pivot = real_part(l(j, j));
    // Written so that a pivot that is not a number fails too.
    if (!(pivot > 0)) {
      info = j + 1;
      break;
    }
    // l_jj = sqrt(a_jj),  l_ij = a_ij / l_jj,  a_ik := a_ik - l_ij conj(l_kj) for i >= k > j
    const Real<T> root = std::sqrt(pivot);
    const Real<T> reciprocal = Real<T>(1) / root;
    l(j, j) = T(root);
    for (std::size_t i = j + 1; i < n; ++i) l(i, j) *= reciprocal;
    for (std::size_t k = j + 1; k < n; ++k) {
      const T factor = conj(l(k, j));
      for (std::size_t i = k; i < n; ++i) l(i, k) -= multiply(l(i, j), factor);
    }
  }

  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = j; i < n; ++i) (lower ? a(i, j) : a(j, i)) = lower ? l(i, j) : conj(l(i, j));
  return info;
}

}  // namespace

template <Scalar T>
std::size_t potrf(Uplo uplo, MatrixView<T> a) {
  TANDEM_DEBUG_ASSERT(uplo != Uplo::general && a.rows == a.cols);
  const std::size_t n = a.rows;
  if (n <= unblocked_order) return factorise_leaf(uplo, a);
  const std::size_t n1 = (n / 2 + unblocked_order - 1) / unblocked_order * unblocked_order;
  const std::size_t n2 = n - n1;
  const auto a11 = a.block(0, 0, n1, n1), a22 = a.block(n1, n1, n2, n2);
  if (const std::size_t info = potrf(uplo, a11); info != 0) return info;
  if (uplo == Uplo::lower) {
    const auto a21 = a.block(n1, 0, n2, n1);
    trsm<T>(Side::right, uplo, Op::conj_trans, Diag::non_unit, T(1), a11, a21);  // L21 := A21 L11^-H
    herk<T>(uplo, Op::no_trans, Real<T>(-1), a21, Real<T>(1), a22);             // A22 := A22 - L21 L21^H
  } else {
    const auto a12 = a.block(0, n1, n1, n2);
    trsm<T>(Side::left, uplo, Op::conj_trans, Diag::non_unit, T(1), a11, a12);  // U12 := U11^-H A12
    herk<T>(uplo, Op::conj_trans, Real<T>(-1), a12, Real<T>(1), a22);           // A22 := A22 - U12^H U12
  }
  const std::size_t info = potrf(uplo, a22);
  return info == 0 ? 0 : n1 + info;
}

#define INSTANTIATE(T) template std::size_t potrf<T>(Uplo, MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
