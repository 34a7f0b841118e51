// tandem/linalg/flows/getrf_nopiv.cpp: the right-looking tiled LU (Buttari, Langou, Kurzak, Dongarra: A class of
// parallel tiled linear algebra algorithms for multicore architectures, Parallel Computing 35, 2009, section 2.2)
// without its pivoting.
#include "tandem/linalg/flows/getrf_nopiv.hpp"

#include <algorithm>

#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/lu_codelets.hpp"
#include "tandem/linalg/flows/lu_priorities.hpp"
#include "tandem/linalg/flows/own_tiles.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {

using namespace internal;

template <Scalar T>
void submit_getrf_nopiv(Runtime& rt, TiledData<T>& a, Info& info) {
  require(is_general(a), "getrf_nopiv: the matrix has to store all its tiles");
  rt.agree_on_least(info.word());
  const std::size_t mt = a.row_tiles(), nt = a.col_tiles(), nb = a.matrix().tile_size();
  const LuPriorities level({.rows = mt, .cols = nt});
  const OwnTiles own(rt, a, OwnTiles::Use::written);
  for (std::size_t k = 0; k < std::min(mt, nt); ++k) {
    const auto iteration = rt.iteration(k);
    // A(k,k) = L(k,k) U(k,k)
    rt.submit({.priority = level.getrf(k)}, getrf_nopiv_codelet<T>(), k * nb, read_write(a(k, k)), &info);
    for (std::size_t i = k + 1; i < mt; ++i) {
      // L(i,k) := A(i,k) U(k,k)^-1
      rt.submit({.priority = level.column(k, i)}, trsm_codelet<T>(), Side::right, Uplo::upper, Op::no_trans,
                Diag::non_unit, T(1), read(a(k, k)), read_write(a(i, k)), &info);
    }
    for (std::size_t j = k + 1; j < nt; ++j) {
      // U(k,j) := L(k,k)^-1 A(k,j)
      rt.submit({.priority = level.row(k, j)}, trsm_codelet<T>(), Side::left, Uplo::lower, Op::no_trans, Diag::unit,
                T(1), read(a(k, k)), read_write(a(k, j)), &info);
    }
    for (std::size_t j = k + 1; j < nt; ++j) {
      // Tasks that use a tile of this rank. All ranks have submitted the tasks above, which write final tiles.
      const TaskIndices updates = own.has(k, j) ? TaskIndices::all() : TaskIndices{own.col(j), own.col(k)};
      for_tasks_of(rt, k + 1, mt, updates, [&](std::size_t i) {
        // A(i,j) := A(i,j) - L(i,k) U(k,j)
        rt.submit({.priority = level.gemm(k, i, j)}, gemm_codelet<T>(), Op::no_trans, Op::no_trans, T(-1),
                  read(a(i, k)), read(a(k, j)), T(1), read_write(a(i, j)), &info);
      });
    }
  }
}

template <Scalar T>
std::size_t getrf_nopiv(Runtime& rt, TiledData<T>& a) {
  Info info;
  submit_getrf_nopiv(rt, a, info);
  rt.wait();
  return info.value();
}

#define INSTANTIATE(T)                                                  \
  template void submit_getrf_nopiv<T>(Runtime&, TiledData<T>&, Info&);  \
  template std::size_t getrf_nopiv<T>(Runtime&, TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
