// tandem/linalg/flows/qr_residuals.cpp: residuals of QR and of its solutions.
#include <algorithm>

#include "tandem/api/codelet.hpp"
#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/gemm.hpp"
#include "tandem/linalg/flows/generate.hpp"
#include "tandem/linalg/flows/norms.hpp"
#include "tandem/linalg/flows/residual_work.hpp"
#include "tandem/linalg/flows/residuals.hpp"
#include "tandem/linalg/flows/unmqr.hpp"
#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/lacpy.hpp"
#include "tandem/linalg/kernels/laset.hpp"

namespace tandem::linalg {
namespace {

using namespace internal;

/// R := the upper triangle (trapezoid) of A, and zeros beneath it.
template <Scalar T>
void submit_upper_part(Runtime& rt, const TiledData<T>& a, TiledData<T>& r) {
  static const Codelet upper("lacpy", [](Uplo part, MatrixView<const T> from, MatrixView<T> to) {
    if (part == Uplo::upper) kernels::laset(Uplo::lower, T(0), T(0), to);
    kernels::lacpy(part, from, to);
  });
  static const Codelet zero("laset", [](MatrixView<T> tile) { kernels::laset(Uplo::general, T(0), T(0), tile); });
  for (std::size_t j = 0; j < r.col_tiles(); ++j) {
    for (std::size_t i = 0; i < r.row_tiles(); ++i) {
      if (i > j) rt.submit(zero, write(r(i, j)));
      else rt.submit(upper, i == j ? Uplo::upper : Uplo::general, read(a(i, j)), write(r(i, j)));
    }
  }
}

/// A := A - B, of equal shapes.
template <Scalar T>
void submit_subtract(Runtime& rt, TiledData<T>& a, const TiledData<T>& b) {
  static const Codelet subtract("subtract", [](MatrixView<const T> from, MatrixView<T> to) {
    for (std::size_t j = 0; j < to.cols; ++j)
      for (std::size_t i = 0; i < to.rows; ++i) to(i, j) -= from(i, j);
  });
  for (std::size_t j = 0; j < a.col_tiles(); ++j)
    for (std::size_t i = 0; i < a.row_tiles(); ++i) rt.submit(subtract, read(b(i, j)), read_write(a(i, j)));
}

/// B := the first rows of A, as many as B has.
template <Scalar T>
void submit_leading_rows(Runtime& rt, const TiledData<T>& a, TiledData<T>& b) {
  static const Codelet copy("lacpy", [](MatrixView<const T> from, MatrixView<T> to) {
    kernels::lacpy(Uplo::general, from.block(0, 0, to.rows, to.cols), to);
  });
  for (std::size_t j = 0; j < b.col_tiles(); ++j)
    for (std::size_t i = 0; i < b.row_tiles(); ++i) rt.submit(copy, read(a(i, j)), write(b(i, j)));
}

}  // namespace

template <Scalar T>
Real<T> geqrf_residual(Runtime& rt, TiledData<T>& a, const TiledData<T>& factor, const TiledData<T>& t) {
  const TileMatrix<T>& m = a.matrix();
  require(m.rows() == factor.matrix().rows() && m.cols() == factor.matrix().cols() &&
              m.tile_size() == factor.matrix().tile_size() && is_general(a) && is_general(factor),
          "geqrf_residual: the shapes of A and its factor differ");
  const Real<T> size = norm_one(rt, a);
  Work<T> product(rt, "Q R", m.rows(), m.cols(), m);
  submit_upper_part(rt, factor, product.data);
  submit_unmqr(rt, Op::no_trans, factor, t, product.data);
  submit_subtract(rt, a, product.data);
  return scaled_residual(norm_one(rt, a), size, std::max(m.rows(), m.cols()), epsilon<T>);
}

template <Scalar T>
Real<T> geqrf_orthogonality(Runtime& rt, const TiledData<T>& factor, const TiledData<T>& t) {
  const TileMatrix<T>& m = factor.matrix();
  const std::size_t columns = std::min(probe_columns, m.tile_size());
  Work<T> w(rt, "probe", m.rows(), columns, m), again(rt, "Q^H Q probe", m.rows(), columns, m);
  submit_generate(rt, probe, w.data);
  submit_generate(rt, probe, again.data);
  submit_unmqr(rt, Op::no_trans, factor, t, again.data);
  submit_unmqr(rt, Op::conj_trans, factor, t, again.data);
  submit_subtract(rt, again.data, w.data);
  return scaled_residual(norm_one(rt, again.data), norm_one(rt, w.data), m.rows(), epsilon<T>);
}

template <Scalar T>
Real<T> gels_residual(Runtime& rt, Op op, const TiledData<T>& a, const TiledData<T>& x, TiledData<T>& b) {
  const std::size_t m = a.matrix().rows(), n = a.matrix().cols(), nrhs = b.matrix().cols(), nb = a.matrix().tile_size();
  const auto fits = [&](const TiledData<T>& side) {
    return is_general(side) && side.matrix().rows() == m && side.matrix().cols() == nrhs &&
           side.matrix().tile_size() == nb;
  };
  require(m >= n && is_general(a) && fits(x) && fits(b), "gels_residual: the shapes of A, X and B do not fit");
  const Real<T> size_a = norm_one(rt, a);
  if (op == Op::no_trans) {
    Work<T> solution(rt, "X", n, nrhs, a.matrix()), product(rt, "A^H (B - A X)", n, nrhs, a.matrix());
    submit_leading_rows(rt, x, solution.data);
    const Real<T> size = size_a * (size_a * norm_one(rt, solution.data) + norm_one(rt, b));
    submit_gemm(rt, Op::no_trans, Op::no_trans, T(-1), a, solution.data, T(1), b);
    submit_gemm(rt, Op::conj_trans, Op::no_trans, T(1), a, b, T(0), product.data);
    return scaled_residual(norm_one(rt, product.data), size, std::max(m, nrhs), epsilon<T>);
  }
  Work<T> difference(rt, "B - A^H X", n, nrhs, a.matrix());
  submit_leading_rows(rt, b, difference.data);
  submit_gemm(rt, Op::conj_trans, Op::no_trans, T(-1), a, x, T(1), difference.data);
  return scaled_residual(norm_one(rt, difference.data), size_a * norm_one(rt, x), m, epsilon<T>);
}

#define INSTANTIATE(T)                                                                                           \
  template Real<T> geqrf_residual<T>(Runtime&, TiledData<T>&, const TiledData<T>&, const TiledData<T>&);         \
  template Real<T> geqrf_orthogonality<T>(Runtime&, const TiledData<T>&, const TiledData<T>&);                   \
  template Real<T> gels_residual<T>(Runtime&, Op, const TiledData<T>&, const TiledData<T>&, TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
