// tandem/linalg/kernels/getrf_nopiv.cpp: recursive LU without pivoting: two halves of the diagonal, joined by trsm and
// gemm.
//
// With A = [A11 A12; A21 A22]:
//   L11 U11 = A11,  L21 := A21 U11^-1,  U12 := L11^-1 A12,  A22 := A22 - L21 U12,  L22 U22 = A22.
// A leaf runs the textbook's loop (Golub and Van Loan, Matrix Computations, 4th ed., algorithm 3.2.1, by outer
// products).
#include "tandem/linalg/kernels/getrf_nopiv.hpp"

#include <algorithm>

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/gemm.hpp"
#include "tandem/linalg/kernels/pivot.hpp"
#include "tandem/linalg/kernels/trsm.hpp"

namespace tandem::linalg::kernels {
namespace {

using namespace internal;

constexpr std::size_t leaf_order = 32;

/// Factorises a small square block in scratch memory, whose columns are near each other.
template <Scalar T>
std::size_t factorise_leaf(MatrixView<T> a) {
  alignas(64) T storage[leaf_order * leaf_order];
  const std::size_t n = a.rows;
  const MatrixView<T> lu{storage, n, n, leaf_order};
  for (std::size_t j = 0; j < n; ++j) std::copy(&a(0, j), &a(0, j) + n, &lu(0, j));

  std::size_t info = 0;
  for (std::size_t j = 0; j < n && info == 0; ++j) {
    if (lu(j, j) == T(0)) {
      info = j + 1;
      break;
    }
    // l_ij = a_ij / u_jj,  a_ik := a_ik - l_ij u_jk for i, k > j
    divide_by_pivot(lu(j, j), &lu(0, j) + j + 1, &lu(0, j) + n);
    for (std::size_t k = j + 1; k < n; ++k) {
      const T factor = lu(j, k);
      for (std::size_t i = j + 1; i < n; ++i) lu(i, k) -= multiply(lu(i, j), factor);
    }
  }

  for (std::size_t j = 0; j < n; ++j) std::copy(&lu(0, j), &lu(0, j) + n, &a(0, j));
  return info;
}

}  // namespace

template <Scalar T>
std::size_t getrf_nopiv(MatrixView<T> a) {
  const std::size_t m = a.rows, n = a.cols, order = std::min(m, n);
  if (order == 0) return 0;
  const bool leaf = order <= leaf_order;
  const std::size_t n1 = leaf ? order : (order / 2 + leaf_order - 1) / leaf_order * leaf_order;
  const auto a11 = a.block(0, 0, n1, n1), a12 = a.block(0, n1, n1, n - n1), a21 = a.block(n1, 0, m - n1, n1);
  if (const std::size_t info = leaf ? factorise_leaf(a11) : getrf_nopiv(a11); info != 0) return info;
  trsm<T>(Side::right, Uplo::upper, Op::no_trans, Diag::non_unit, T(1), a11, a21);  // L21 := A21 U11^-1
  trsm<T>(Side::left, Uplo::lower, Op::no_trans, Diag::unit, T(1), a11, a12);       // U12 := L11^-1 A12
  if (n1 == order) return 0;
  const auto a22 = a.block(n1, n1, m - n1, n - n1);
  gemm<T>(Op::no_trans, Op::no_trans, T(-1), a21, a12, T(1), a22);  // A22 := A22 - L21 U12
  const std::size_t info = getrf_nopiv(a22);
  return info == 0 ? 0 : n1 + info;
}

#define INSTANTIATE(T) template std::size_t getrf_nopiv<T>(MatrixView<T>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
