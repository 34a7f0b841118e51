// tandem/linalg/flows/residuals.cpp: residuals by flows of their own.
#include "tandem/linalg/flows/residuals.hpp"

#include <algorithm>
#include <cmath>

#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/codelets.hpp"
#include "tandem/linalg/flows/gemm.hpp"
#include "tandem/linalg/flows/generate.hpp"
#include "tandem/linalg/flows/hemm.hpp"
#include "tandem/linalg/flows/laswp.hpp"
#include "tandem/linalg/flows/norms.hpp"
#include "tandem/linalg/flows/residual_work.hpp"
#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/laset.hpp"

namespace tandem::linalg {
namespace {

using namespace internal;

/// A := A - L U for L and U in `factors`, one term of the sum after the other.
template <Scalar T>
void submit_subtract_product(Runtime& rt, TiledData<T>& a, const TiledData<T>& factors) {
  // The factors of a diagonal tile, with the zeros and ones that are not stored.
  static const Codelet split("split", [](MatrixView<const T> lu, MatrixView<T> l, MatrixView<T> u) {
    kernels::lacpy(Uplo::lower, lu.block(0, 0, l.rows, l.cols), l);
    kernels::laset(Uplo::upper, T(0), T(1), l);
    kernels::laset(Uplo::lower, T(0), T(0), u);
    kernels::lacpy(Uplo::upper, lu.block(0, 0, u.rows, u.cols), u);
  });
  const TileMatrix<T>& m = a.matrix();
  for (std::size_t k = 0; k < std::min(a.row_tiles(), a.col_tiles()); ++k) {
    const std::size_t order = std::min(m.tile_rows(k), m.tile_cols(k));
    const DataOptions place = rt.beside(factors(k, k));
    const auto l = rt.matrix<T>("L's diagonal tile", m.tile_rows(k), order, place),
               u = rt.matrix<T>("U's diagonal tile", order, m.tile_cols(k), place);
    rt.submit(split, read(factors(k, k)), write(l), write(u));
    for (std::size_t j = k; j < a.col_tiles(); ++j)
      for (std::size_t i = k; i < a.row_tiles(); ++i)
        rt.submit(gemm_codelet<T>(), Op::no_trans, Op::no_trans, T(-1), read(i == k ? l : factors(i, k)),
                  read(j == k ? u : factors(k, j)), T(1), read_write(a(i, j)), no_info);
  }
}

/// || A - L U ||_1 / (n ||A||_1 eps); the order of A's rows does not change its norm.
template <Scalar T>
Real<T> product_residual(Runtime& rt, Real<T> size, TiledData<T>& a, const TiledData<T>& factors) {
  submit_subtract_product(rt, a, factors);
  return scaled_residual(norm_one(rt, a), size, a.matrix().cols(), epsilon<T>);
}

template <Scalar T>
void require_same_shape(const TiledData<T>& a, const TiledData<T>& factors) {
  const TileMatrix<T>&ma = a.matrix(), &mf = factors.matrix();
  require(is_general(a) && is_general(factors), "getrf_residual: the matrices have to store all their tiles");
  require(ma.rows() == mf.rows() && ma.cols() == mf.cols() && ma.tile_size() == mf.tile_size(),
          "getrf_residual: the shapes of A and its factors differ");
}

}  // namespace

template <Scalar T>
Real<T> potrf_residual(Runtime& rt, Uplo uplo, TiledData<T>& a, const TiledData<T>& factor) {
  require(has_triangle(a, uplo) && has_triangle(factor, uplo),
          "potrf_residual: the matrices have to store the triangle");
  const std::size_t n = a.matrix().rows(), nt = a.row_tiles();
  const Real<T> size = norm_one_hermitian(rt, uplo, a);
  const bool lower = uplo == Uplo::lower;
  // A diagonal tile of the factor, with zeros in its other triangle.
  static const Codelet triangle("triangle", [](Uplo part, MatrixView<const T> from, MatrixView<T> to) {
    kernels::laset(opposite(part), T(0), T(0), to);
    kernels::lacpy(part, from, to);
  });
  const Op op = lower ? Op::no_trans : Op::conj_trans, other = lower ? Op::conj_trans : Op::no_trans;
  for (std::size_t k = 0; k < nt; ++k) {
    const std::size_t order = a.matrix().tile_rows(k);
    const auto diagonal = rt.matrix<T>("factor's diagonal tile", order, order, rt.beside(factor(k, k)));
    rt.submit(triangle, uplo, read(factor(k, k)), write(diagonal));
    const auto factor_tile = [&](std::size_t m) -> const Data<Matrix<T>>& {
      return m == k ? diagonal : lower ? factor(m, k) : factor(k, m);
    };
    for (std::size_t n_tile = k; n_tile < nt; ++n_tile) {
      // A(n,n) := A(n,n) - L(n,k) L(n,k)^H
      rt.submit(herk_codelet<T>(), uplo, op, Real<T>(-1), read(factor_tile(n_tile)), Real<T>(1),
                read_write(a(n_tile, n_tile)), no_info);
      for (std::size_t m = n_tile + 1; m < nt; ++m) {
        // A(m,n) := A(m,n) - L(m,k) L(n,k)^H, or the transpose of this
        const std::size_t row = lower ? m : n_tile, col = lower ? n_tile : m;
        rt.submit(gemm_codelet<T>(), op, other, T(-1), read(factor_tile(row)), read(factor_tile(col)), T(1),
                  read_write(a(row, col)), no_info);
      }
    }
  }
  return scaled_residual(norm_one_hermitian(rt, uplo, a), size, n, epsilon<T>);
}

template <Scalar T>
Real<T> posv_residual(Runtime& rt, Uplo uplo, const TiledData<T>& a, const TiledData<T>& x, TiledData<T>& b) {
  const Real<T> size = norm_one_hermitian(rt, uplo, a) * norm_one(rt, x);
  submit_hemm(rt, uplo, T(-1), a, x, T(1), b);  // B := B - A X
  return scaled_residual(norm_one(rt, b), size, a.matrix().rows(), epsilon<T>);
}

template <Scalar T>
Real<T> getrf_residual(Runtime& rt, TiledData<T>& a, const TiledData<T>& factors, const TiledPivots& pivots) {
  require_same_shape(a, factors);
  const Real<T> size = norm_one(rt, a);
  submit_laswp(rt, pivots, a);
  return product_residual(rt, size, a, factors);
}

template <Scalar T>
Real<T> getrf_nopiv_residual(Runtime& rt, TiledData<T>& a, const TiledData<T>& factors) {
  require_same_shape(a, factors);
  const Real<T> size = norm_one(rt, a);
  return product_residual(rt, size, a, factors);
}

template <Scalar T>
Real<T> gesv_residual(Runtime& rt, const TiledData<T>& a, const TiledData<T>& x, TiledData<T>& b) {
  const Real<T> size = norm_one(rt, a) * norm_one(rt, x);
  submit_gemm(rt, Op::no_trans, Op::no_trans, T(-1), a, x, T(1), b);  // B := B - A X
  return scaled_residual(norm_one(rt, b), size, a.matrix().rows(), epsilon<T>);
}

template <Scalar T>
Real<T> trsm_residual(Runtime& rt, Op op, std::type_identity_t<T> alpha, const TiledData<T>& triangle,
                      const TiledData<T>& x, TiledData<T>& b) {
  const Real<T> size = norm_one(rt, triangle) * norm_one(rt, x);
  submit_gemm(rt, op, Op::no_trans, T(-1), triangle, x, alpha, b);  // B := alpha B - op(A) X
  return scaled_residual(norm_one(rt, b), size, triangle.matrix().rows(), epsilon<T>);
}

template <Scalar T>
Real<T> gemm_residual(Runtime& rt, const Product<T>& p, const TiledData<T>& before, const TiledData<T>& c) {
  const TileMatrix<T>& mc = c.matrix();
  const std::size_t nb = mc.tile_size(), columns = std::min(probe_columns, nb);
  const std::size_t k = op_cols(p.op_a, p.a.matrix().rows(), p.a.matrix().cols());
  Work<T> w(rt, "probe", mc.cols(), columns, mc), bw(rt, "op(B) W", k, columns, mc),
      difference(rt, "difference", mc.rows(), columns, mc);
  submit_generate(rt, probe, w.data);
  submit_gemm(rt, p.op_b, Op::no_trans, T(1), p.b, w.data, T(0), bw.data);
  submit_gemm(rt, p.op_a, Op::no_trans, p.alpha, p.a, bw.data, T(0), difference.data);
  submit_gemm(rt, Op::no_trans, Op::no_trans, p.beta, before, w.data, T(1), difference.data);
  submit_gemm(rt, Op::no_trans, Op::no_trans, T(-1), c, w.data, T(1), difference.data);
  const Real<T> terms = static_cast<Real<T>>(k) * std::abs(p.alpha) * norm_max(rt, p.a) * norm_max(rt, p.b);
  const Real<T> size = terms + std::abs(p.beta) * norm_max(rt, before);
  return scaled_residual(norm_max(rt, difference.data), size, mc.cols(), epsilon<T>);
}

template <Scalar T>
void submit_expand(Runtime& rt, Uplo uplo, Mirror mirror, const TiledData<T>& a, TiledData<T>& b) {
  require(has_triangle(a, uplo) && is_general(b), "expand: A has to store its triangle and B all its tiles");
  require(a.matrix().rows() == b.matrix().rows() && a.matrix().cols() == b.matrix().cols() &&
              a.matrix().tile_size() == b.matrix().tile_size(),
          "expand: the shapes of A and B differ");
  static const Codelet transpose("transpose", [](Mirror kind, MatrixView<const T> from, MatrixView<T> to) {
    for (std::size_t j = 0; j < to.cols; ++j)
      for (std::size_t i = 0; i < to.rows; ++i) to(i, j) = kind == Mirror::hermitian ? conj(from(j, i)) : from(j, i);
  });
  static const Codelet fill("fill", [](Uplo part, Mirror kind, MatrixView<T> tile) {
    for (std::size_t j = 0; j < tile.cols; ++j)
      for (std::size_t i = j + 1; i < tile.rows; ++i) {
        const T& from = part == Uplo::lower ? tile(i, j) : tile(j, i);
        (part == Uplo::lower ? tile(j, i) : tile(i, j)) = kind == Mirror::hermitian ? conj(from) : from;
      }
  });
  for (std::size_t j = 0; j < b.col_tiles(); ++j) {
    for (std::size_t i = 0; i < b.row_tiles(); ++i) {
      const bool stored = i == j || (i > j) == (uplo == Uplo::lower);
      if (stored) rt.submit(lacpy_codelet<T>(), Uplo::general, read(a(i, j)), write(b(i, j)));
      else rt.submit(transpose, mirror, read(a(j, i)), write(b(i, j)));
      if (i == j) rt.submit(fill, uplo, mirror, read_write(b(i, i)));
    }
  }
}

#define INSTANTIATE(T)                                                                                         \
  template Real<T> potrf_residual<T>(Runtime&, Uplo, TiledData<T>&, const TiledData<T>&);                      \
  template Real<T> posv_residual<T>(Runtime&, Uplo, const TiledData<T>&, const TiledData<T>&, TiledData<T>&);  \
  template Real<T> getrf_residual<T>(Runtime&, TiledData<T>&, const TiledData<T>&, const TiledPivots&);        \
  template Real<T> getrf_nopiv_residual<T>(Runtime&, TiledData<T>&, const TiledData<T>&);                      \
  template Real<T> gesv_residual<T>(Runtime&, const TiledData<T>&, const TiledData<T>&, TiledData<T>&);        \
  template Real<T> trsm_residual<T>(Runtime&, Op, T, const TiledData<T>&, const TiledData<T>&, TiledData<T>&); \
  template Real<T> gemm_residual<T>(Runtime&, const Product<T>&, const TiledData<T>&, const TiledData<T>&);    \
  template void submit_expand<T>(Runtime&, Uplo, Mirror, const TiledData<T>&, TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
