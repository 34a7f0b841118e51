// tandem/linalg/kernels/getrf.cpp: recursive LU with partial pivoting: left columns, right columns, joined by trsm and
// gemm.
//
// With A = [A1 A2], both of all rows (Toledo, Locality of reference in LU decomposition with partial pivoting, SIAM J.
// Matrix Anal. Appl. 18(4), 1997):
//   P1 A1 = [L11; L21] U11,  [A12; A22] := P1 A2,  U12 := L11^-1 A12,  A22 := A22 - L21 U12,  P2 A22 = L22 U22,  L21 :=
//   P2 L21.
#include "tandem/linalg/kernels/getrf.hpp"

#include <algorithm>
#include <utility>

#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/gemm.hpp"
#include "tandem/linalg/kernels/laswp.hpp"
#include "tandem/linalg/kernels/pivot.hpp"
#include "tandem/linalg/kernels/trsm.hpp"

namespace tandem::linalg::kernels {
namespace {

using namespace internal;

/// Columns of a leaf: with 512 rows of doubles they fill the near cache.
constexpr std::size_t leaf_columns = 8;

/// The row of the largest element of a column at or below row `from`.
template <Scalar T>
std::size_t find_pivot(MatrixView<T> a, std::size_t column, std::size_t from) noexcept {
  std::size_t row = from;
  Real<T> largest = pivot_size(a(from, column));
  for (std::size_t i = from + 1; i < a.rows; ++i) {
    const Real<T> size = pivot_size(a(i, column));
    if (size > largest) {
      largest = size;
      row = i;
    }
  }
  return row;
}

/// The textbook's loop over few columns and at least as many rows.
template <Scalar T>
std::size_t factorise_leaf(MatrixView<T> a, std::span<std::size_t> interchanges) {
  std::size_t info = 0;
  for (std::size_t j = 0; j < a.cols; ++j) {
    const std::size_t row = interchanges[j] = find_pivot(a, j, j);
    for (std::size_t k = 0; k < a.cols; ++k) std::swap(a(j, k), a(row, k));
    if (a(j, j) == T(0)) {
      // The column below is zero too: there is nothing to eliminate.
      if (info == 0) info = j + 1;
      continue;
    }
    divide_by_pivot(a(j, j), &a(0, j) + j + 1, &a(0, j) + a.rows);
    for (std::size_t k = j + 1; k < a.cols; ++k) {
      const T factor = a(j, k);
      const T* const l = &a(0, j);
      T* const c = &a(0, k);
      for (std::size_t i = j + 1; i < a.rows; ++i) c[i] -= multiply(l[i], factor);
    }
  }
  return info;
}

/// For at least as many rows as columns.
template <Scalar T>
std::size_t factorise_tall(MatrixView<T> a, std::span<std::size_t> interchanges) {
  const std::size_t m = a.rows, n = a.cols;
  if (n <= leaf_columns) return factorise_leaf(a, interchanges);
  const std::size_t n1 = (n / 2 + leaf_columns - 1) / leaf_columns * leaf_columns, n2 = n - n1;
  const auto first = interchanges.first(n1), second = interchanges.subspan(n1);
  const auto a11 = a.block(0, 0, n1, n1), a21 = a.block(n1, 0, m - n1, n1);
  const auto a12 = a.block(0, n1, n1, n2), a22 = a.block(n1, n1, m - n1, n2);
  const std::size_t info1 = factorise_tall(a.block(0, 0, m, n1), first);
  laswp<T>(first, a.block(0, n1, m, n2));
  trsm<T>(Side::left, Uplo::lower, Op::no_trans, Diag::unit, T(1), a11, a12);  // U12 := L11^-1 A12
  gemm<T>(Op::no_trans, Op::no_trans, T(-1), a21, a12, T(1), a22);             // A22 := A22 - L21 U12
  const std::size_t info2 = factorise_tall(a22, second);
  laswp<T>(second, a21);
  for (std::size_t& row : second) row += n1;
  return info1 != 0 ? info1 : info2 != 0 ? n1 + info2 : 0;
}

}  // namespace

template <Scalar T>
std::size_t getrf(MatrixView<T> a, std::span<std::size_t> interchanges) {
  const std::size_t order = std::min(a.rows, a.cols);
  TANDEM_DEBUG_ASSERT(interchanges.size() == order);
  if (order == 0) return 0;
  const std::size_t info = factorise_tall(a.block(0, 0, a.rows, order), interchanges);
  if (const auto right = a.block(0, order, a.rows, a.cols - order); !right.empty()) {
    laswp<T>(interchanges, right);
    trsm<T>(Side::left, Uplo::lower, Op::no_trans, Diag::unit, T(1), a, right);
  }
  return info;
}

#define INSTANTIATE(T) template std::size_t getrf<T>(MatrixView<T>, std::span<std::size_t>);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::kernels
