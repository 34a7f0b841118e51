// tandem/linalg/flows/gels.cpp: Q by unmqr, R by substitution in the leading n rows of B (Golub, Van Loan: Matrix
// Computations, 4th ed., sections 5.3.2 and 5.6.2).
#include "tandem/linalg/flows/gels.hpp"

#include "tandem/api/codelet.hpp"
#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/qr_shapes.hpp"
#include "tandem/linalg/kernels/blas.hpp"
#include "tandem/linalg/kernels/gemm.hpp"
#include "tandem/linalg/kernels/laset.hpp"
#include "tandem/linalg/kernels/trsm.hpp"

namespace tandem::linalg {
namespace {

using namespace internal;

// R is the upper triangle of A's first n rows, and X or B the first n rows of a matrix of m. The last tiles of both may
// have further rows, which the kernels must not touch; therefore this is not submit_trsm.

/// The first `rows` rows.
template <class T>
MatrixView<T> leading(MatrixView<T> a, std::size_t rows) noexcept {
  return a.block(0, 0, rows, a.cols);
}

template <Scalar T>
const auto& solve_codelet() {
  static const Codelet codelet("trsm", [](Op op, MatrixView<const T> r, MatrixView<T> b) {
    kernels::trsm(Side::left, Uplo::upper, op, Diag::non_unit, T(1), leading(r, r.cols), leading(b, r.cols));
  });
  return codelet;
}

/// B(i) := B(i) - R(i,k) X(k)
template <Scalar T>
const auto& update_codelet() {
  static const Codelet codelet("gemm", [](MatrixView<const T> r, MatrixView<const T> x, MatrixView<T> b) {
    kernels::gemm(Op::no_trans, Op::no_trans, T(-1), r, leading(x, r.cols), T(1), b);
  });
  return codelet;
}

/// B(i) := B(i) - R(k,i)^H X(k)
template <Scalar T>
const auto& conj_update_codelet() {
  static const Codelet codelet("gemm", [](MatrixView<const T> r, MatrixView<const T> x, MatrixView<T> b) {
    kernels::gemm(Op::conj_trans, Op::no_trans, T(-1), r, x, T(1), leading(b, r.cols));
  });
  return codelet;
}

// As in trsm.cpp: a solve of 3 and an update of 6 per remaining step.
int solve_level(std::size_t steps_left) { return 9 * static_cast<int>(steps_left) + 3; }
int update_level(std::size_t steps_left) { return solve_level(steps_left) + 6; }

/// R X = B from the last row back.
template <Scalar T>
void submit_solve(Runtime& rt, const TiledData<T>& r, TiledData<T>& b) {
  for (std::size_t k = r.col_tiles(); k-- > 0;) {
    const auto iteration = rt.iteration(k);
    for (std::size_t j = 0; j < b.col_tiles(); ++j) {
      // R(k,k) X(k,j) = B(k,j)
      rt.submit({.priority = solve_level(k)}, solve_codelet<T>(), Op::no_trans, read(r(k, k)), read_write(b(k, j)));
    }
    for (std::size_t i = k; i-- > 0;) {
      for (std::size_t j = 0; j < b.col_tiles(); ++j) {
        rt.submit({.priority = update_level(i)}, update_codelet<T>(), read(r(i, k)), read(b(k, j)),
                  read_write(b(i, j)));
      }
    }
  }
}

/// R^H X = B from the first row on.
template <Scalar T>
void submit_conj_solve(Runtime& rt, const TiledData<T>& r, TiledData<T>& b) {
  const std::size_t nt = r.col_tiles();
  for (std::size_t k = 0; k < nt; ++k) {
    const auto iteration = rt.iteration(k);
    for (std::size_t j = 0; j < b.col_tiles(); ++j) {
      // R(k,k)^H X(k,j) = B(k,j)
      rt.submit({.priority = solve_level(nt - 1 - k)}, solve_codelet<T>(), Op::conj_trans, read(r(k, k)),
                read_write(b(k, j)));
    }
    for (std::size_t i = k + 1; i < nt; ++i) {
      for (std::size_t j = 0; j < b.col_tiles(); ++j) {
        rt.submit({.priority = update_level(nt - 1 - i)}, conj_update_codelet<T>(), read(r(k, i)), read(b(k, j)),
                  read_write(b(i, j)));
      }
    }
  }
}

/// Zeros in the rows of B from `first` on.
template <Scalar T>
void submit_clear_below(Runtime& rt, std::size_t first, TiledData<T>& b) {
  static const Codelet clear("laset", [](std::size_t kept, MatrixView<T> tile) {
    kernels::laset(Uplo::general, T(0), T(0), tile.block(kept, 0, tile.rows - kept, tile.cols));
  });
  const std::size_t nb = b.matrix().tile_size();
  for (std::size_t j = 0; j < b.col_tiles(); ++j) {
    for (std::size_t i = first / nb; i < b.row_tiles(); ++i) {
      const std::size_t kept = i == first / nb ? first % nb : 0;
      if (kept > 0) rt.submit(clear, kept, read_write(b(i, j)));
      else rt.submit(clear, kept, write(b(i, j)));
    }
  }
}

}  // namespace

template <Scalar T>
void submit_geqrs(Runtime& rt, Op op, const TiledData<T>& a, const TiledData<T>& t, TiledData<T>& b) {
  const std::size_t m = a.matrix().rows(), n = a.matrix().cols();
  require(!is_complex<T> || op != Op::trans, "gels: op is no_trans or conj_trans for complex matrices");
  require(
      m >= n,
      "gels: A has fewer rows than columns; to solve A X = B with the least norm, factorise A^H and give conj_trans");
  require(is_general(a) && is_general(b), "gels: the matrices have to store all their tiles");
  require(has_factors_shape(t, a), "gels: T has to be of A's geqrf_factors_shape");
  require(a.matrix().tile_size() == b.matrix().tile_size(), "gels: the tile sizes differ");
  require(b.matrix().rows() == m, "gels: B has to have A's rows");
  if (op == Op::no_trans) {
    submit_unmqr(rt, Op::conj_trans, a, t, b);  // [C; D] := Q^H B
    submit_solve(rt, a, b);                     // R X = C
  } else {
    submit_conj_solve(rt, a, b);               // R^H Y = B
    submit_clear_below(rt, n, b);              // of all [Y; Z], Z = 0 is the shortest
    submit_unmqr(rt, Op::no_trans, a, t, b);   // X := Q [Y; 0]
  }
}

#define INSTANTIATE(T) \
  template void submit_geqrs<T>(Runtime&, Op, const TiledData<T>&, const TiledData<T>&, TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
