// tandem/linalg/flows/potrf.cpp: the right-looking tiled Cholesky (Buttari, Langou, Kurzak, Dongarra: A class of
// parallel tiled linear algebra algorithms for multicore architectures, Parallel Computing 35, 2009, section 2.1).
#include "tandem/linalg/flows/potrf.hpp"

#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/cholesky_priorities.hpp"
#include "tandem/linalg/flows/codelets.hpp"
#include "tandem/linalg/flows/own_tiles.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {
namespace {

using namespace internal;

constexpr Op conj_trans = Op::conj_trans, no_trans = Op::no_trans;

/// The updates of row m (lower) or column m (upper) in step k that use a tile of this rank. All ranks submit the panels
/// and the diagonal, which write each tile last. `own_line` are the rank's tiles in that row or column, `own_panel`
/// those in the panel of step k.
TaskIndices own_updates(bool sees_all, OwnTiles::Indices own_line, OwnTiles::Indices own_panel) {
  return sees_all ? TaskIndices::all() : TaskIndices{own_line, own_panel};
}

template <Scalar T>
void submit_lower(Runtime& rt, const TiledData<T>& a, Info* info) {
  const std::size_t nt = a.row_tiles(), nb = a.matrix().tile_size();
  const OwnTiles own(rt, a, OwnTiles::Use::written);
  const CholeskyPriorities level(nt);
  constexpr Uplo uplo = Uplo::lower;
  for (std::size_t k = 0; k < nt; ++k) {
    const auto iteration = rt.iteration(k);
    // A(k,k) = L(k,k) L(k,k)^H
    rt.submit({.priority = level.potrf(k)}, potrf_codelet<T>(), uplo, k * nb, read_write(a(k, k)), info);
    for (std::size_t m = k + 1; m < nt; ++m) {
      // L(m,k) := A(m,k) L(k,k)^-H
      rt.submit({.priority = level.trsm(k, m)}, trsm_codelet<T>(), Side::right, uplo, conj_trans, Diag::non_unit, T(1),
                read(a(k, k)), read_write(a(m, k)), info);
    }
    for (std::size_t m = k + 1; m < nt; ++m) {
      for_tasks_of(rt, k + 1, m, own_updates(own.has(m, k), own.row(m), own.col(k)), [&](std::size_t n) {
        // A(m,n) := A(m,n) - L(m,k) L(n,k)^H
        rt.submit({.priority = level.gemm(k, m, n)}, gemm_codelet<T>(), no_trans, conj_trans, T(-1), read(a(m, k)),
                  read(a(n, k)), T(1), read_write(a(m, n)), info);
      });
      // A(m,m) := A(m,m) - L(m,k) L(m,k)^H
      rt.submit({.priority = level.herk(k, m)}, herk_codelet<T>(), uplo, no_trans, Real<T>(-1), read(a(m, k)),
                Real<T>(1), read_write(a(m, m)), info);
    }
  }
}

template <Scalar T>
void submit_upper(Runtime& rt, const TiledData<T>& a, Info* info) {
  const std::size_t nt = a.row_tiles(), nb = a.matrix().tile_size();
  const OwnTiles own(rt, a, OwnTiles::Use::written);
  const CholeskyPriorities level(nt);
  constexpr Uplo uplo = Uplo::upper;
  for (std::size_t k = 0; k < nt; ++k) {
    const auto iteration = rt.iteration(k);
    // A(k,k) = U(k,k)^H U(k,k)
    rt.submit({.priority = level.potrf(k)}, potrf_codelet<T>(), uplo, k * nb, read_write(a(k, k)), info);
    for (std::size_t m = k + 1; m < nt; ++m) {
      // U(k,m) := U(k,k)^-H A(k,m)
      rt.submit({.priority = level.trsm(k, m)}, trsm_codelet<T>(), Side::left, uplo, conj_trans, Diag::non_unit, T(1),
                read(a(k, k)), read_write(a(k, m)), info);
    }
    for (std::size_t m = k + 1; m < nt; ++m) {
      for_tasks_of(rt, k + 1, m, own_updates(own.has(k, m), own.col(m), own.row(k)), [&](std::size_t n) {
        // A(n,m) := A(n,m) - U(k,n)^H U(k,m)
        rt.submit({.priority = level.gemm(k, m, n)}, gemm_codelet<T>(), conj_trans, no_trans, T(-1), read(a(k, n)),
                  read(a(k, m)), T(1), read_write(a(n, m)), info);
      });
      // A(m,m) := A(m,m) - U(k,m)^H U(k,m)
      rt.submit({.priority = level.herk(k, m)}, herk_codelet<T>(), uplo, conj_trans, Real<T>(-1), read(a(k, m)),
                Real<T>(1), read_write(a(m, m)), info);
    }
  }
}

}  // namespace

template <Scalar T>
void submit_potrf(Runtime& rt, Uplo uplo, TiledData<T>& a, Info& info) {
  require(has_triangle(a, uplo), "potrf: the matrix has to be square and store the triangle that is factorised");
  rt.agree_on_least(info.word());
  if (uplo == Uplo::lower) {
    submit_lower(rt, a, &info);
  } else {
    submit_upper(rt, a, &info);
  }
}

template <Scalar T>
std::size_t potrf(Runtime& rt, Uplo uplo, TiledData<T>& a) {
  Info info;
  submit_potrf(rt, uplo, a, info);
  rt.wait();
  return info.value();
}

#define INSTANTIATE(T)                                                    \
  template void submit_potrf<T>(Runtime&, Uplo, TiledData<T>&, Info&);    \
  template std::size_t potrf<T>(Runtime&, Uplo, TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
