// tandem/linalg/kernels/block_reflector.hpp: products of Householder reflectors in compact form, of which the tile
// kernels of QR are made. Private to the kernels.
//
// A reflector H = 1 - tau v v^H takes a column to a multiple of the first unit vector. The product of k of them is
//   Q = H_1 H_2 ... H_k = 1 - V T V^H,   V = [v_1 ... v_k],   T upper triangular
// (Schreiber, Van Loan: A storage-efficient WY representation for products of Householder transformations, SIAM J. Sci.
// Stat. Comput. 10, 1989), which is applied to many columns by products of matrices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::internal {

/// The most reflectors in one block: T's rows, and so LAPACK's ib.
inline constexpr std::size_t block_reflector_max = 32;

/// k columns to be factorised, or their reflectors afterwards: a square R, k x k, of which the upper triangle is used,
/// on top of `below`, m x k. V is [V0; below]. For a trapezoid V0 is stored below the diagonal of R, has ones on its
/// diagonal, and `below` continues where R ends, in the same columns; otherwise V0 is the identity, and the elements
/// below R's diagonal are not touched.
template <class T>
struct Panel {
  MatrixView<T> r;
  MatrixView<T> below;
  bool trapezoid = false;

  std::size_t count() const noexcept { return r.cols; }

  /// The first k1 columns.
  Panel left(std::size_t k1) const noexcept { return {r.block(0, 0, k1, k1), rest(0, k1, k1), trapezoid}; }
  /// The other columns, without the rows that the first k1 columns end with.
  Panel right(std::size_t k1) const noexcept {
    const std::size_t k2 = count() - k1;
    return {r.block(k1, k1, k2, k2), below.block(0, k1, below.rows, k2), trapezoid};
  }
  /// What is below row k1 of R in the columns [first, first + cols): for a trapezoid including later rows of R.
  MatrixView<T> rest(std::size_t first, std::size_t cols, std::size_t k1) const noexcept {
    if (!trapezoid) return below.block(0, first, below.rows, cols);
    return {r.data + k1 + first * r.ld, r.rows - k1 + below.rows, cols, r.ld};
  }

  operator Panel<const T>() const noexcept
    requires(!std::is_const_v<T>)
  {
    return {r, below, trapezoid};
  }
};

/// The k columns of A from (at, at) on, and all below them: a panel of LAPACK's geqrt.
template <class T>
Panel<T> trapezoid_panel(MatrixView<T> a, std::size_t at, std::size_t k) noexcept {
  return {a.block(at, at, k, k), a.block(at + k, at, a.rows - at - k, k), true};
}

/// The k columns from `at` on of the triangle A on top of B: a panel of LAPACK's tpqrt.
template <class T>
Panel<T> stacked_panel(MatrixView<T> a, MatrixView<T> b, std::size_t at, std::size_t k) noexcept {
  return {a.block(at, at, k, k), b.block(0, at, b.rows, k), false};
}

/// Calls `visit(first, count)` for blocks of `ib` out of `reflectors` in the order in which op(Q) = op(Q_1 Q_2 ...) is
/// applied: from the first one on for conj_trans, from the last one back for no_trans.
template <class Visit>
void for_each_block(Op op, std::size_t reflectors, std::size_t ib, const Visit& visit) {
  const std::size_t blocks = reflectors == 0 ? 0 : (reflectors + ib - 1) / ib;
  for (std::size_t step = 0; step < blocks; ++step) {
    const std::size_t first = (op == Op::no_trans ? blocks - 1 - step : step) * ib;
    visit(first, std::min(ib, reflectors - first));
  }
}

/// Factorises a panel of at most block_reflector_max columns: R and V replace it, and T, with zeros beneath its
/// diagonal, replaces `t`, k x k. As in LAPACK, Q^H [R; below] = [R'; 0], the diagonal of R' is real, and each
/// reflector's tau has a real part from 1 to 2 or is 0.
template <Scalar T>
void factorise_panel(const Panel<T>& panel, MatrixView<T> t);

/// [C0; C1] := op(Q) [C0; C1], op being no_trans or conj_trans; C0 has R's rows and C1 those of `below`.
template <Scalar T>
void apply_reflectors(Op op, const Panel<const T>& v, MatrixView<const T> t, MatrixView<T> c0, MatrixView<T> c1);

}  // namespace tandem::linalg::internal
