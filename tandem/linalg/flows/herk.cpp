// tandem/linalg/flows/herk.cpp: rank-k updates: herk or syrk on diagonal tiles, gemm beside them.
#include "tandem/linalg/flows/herk.hpp"

#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/codelets.hpp"
#include "tandem/linalg/flows/own_tiles.hpp"
#include "tandem/linalg/flows/scale.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {
namespace {

using namespace internal;

/// The loops that both updates share. `update_diagonal(a_ik, beta, c_ii)` submits a diagonal task; `op` is op(A)'s and
/// `other` that of the second factor.
template <Scalar T, class UpdateDiagonal>
void submit_rank_update(Runtime& rt, Uplo uplo, Op op, Op other, T alpha, const TiledData<T>& a, T beta,
                        TiledData<T>& c, UpdateDiagonal update_diagonal) {
  const TileMatrix<T>&ma = a.matrix(), &mc = c.matrix();
  require(has_triangle(c, uplo), "herk or syrk: C has to be square and store the triangle that is updated");
  require(is_general(a), "herk or syrk: A has to store all its tiles");
  require(ma.tile_size() == mc.tile_size(), "herk or syrk: the tile sizes differ");
  require(op_rows(op, ma.rows(), ma.cols()) == mc.rows(), "herk or syrk: the dimensions of op(A) and C do not fit");
  const std::size_t kt = op_cols(op, a.row_tiles(), a.col_tiles());
  if (kt == 0) return submit_scale(rt, uplo, beta, c);
  const auto a_tile = [&](std::size_t i, std::size_t k) -> const Data<Matrix<T>>& {
    return op == Op::no_trans ? a(i, k) : a(k, i);
  };
  const OwnTiles own_a(rt, a, OwnTiles::Use::read), own_c(rt, c, OwnTiles::Use::written);
  const bool all = own_a.everything() || own_c.everything();
  const LastIndex last_product(kt);
  const auto own_line = [&](std::size_t i) { return op == Op::no_trans ? own_a.row(i) : own_a.col(i); };
  for (std::size_t j = 0; j < c.col_tiles(); ++j) {
    for (std::size_t k = 0; k < kt; ++k) update_diagonal(a_tile(j, k), k == 0 ? beta : T(1), c(j, j));
    const std::size_t first = uplo == Uplo::lower ? j + 1 : 0;
    const std::size_t last = uplo == Uplo::lower ? c.row_tiles() : j;
    for (std::size_t i = first; i < last; ++i) {
      // As in gemm.
      const TaskIndices products =
          all || own_c.has(i, j) ? TaskIndices::all() : TaskIndices{own_line(i), own_line(j), last_product.list()};
      for_tasks_of(rt, 0, kt, products, [&](std::size_t k) {
        // C(i,j) := alpha op(A)(i,k) op(A)(j,k)^H + beta C(i,j)
        rt.submit({.priority = static_cast<int>(kt - k)}, gemm_codelet<T>(), op, other, alpha, read(a_tile(i, k)),
                  read(a_tile(j, k)), k == 0 ? beta : T(1), read_write(c(i, j)), no_info);
      });
    }
  }
}

}  // namespace

template <Scalar T>
void submit_herk(Runtime& rt, Uplo uplo, Op op, Real<T> alpha, const TiledData<T>& a, Real<T> beta, TiledData<T>& c) {
  require(!is_complex<T> || op != Op::trans,
          "herk: op is no_trans or conj_trans for complex matrices; syrk transposes");
  const Op other = op == Op::no_trans ? Op::conj_trans : Op::no_trans;
  submit_rank_update(rt, uplo, op, other, T(alpha), a, T(beta), c,
                     [&](const Data<Matrix<T>>& a_ik, T once, const Data<Matrix<T>>& c_ii) {
                       rt.submit(herk_codelet<T>(), uplo, op, alpha, read(a_ik), real_part(once), read_write(c_ii),
                                 no_info);
                     });
}

template <Scalar T>
void submit_syrk(Runtime& rt, Uplo uplo, Op op, std::type_identity_t<T> alpha, const TiledData<T>& a,
                 std::type_identity_t<T> beta, TiledData<T>& c) {
  require(!is_complex<T> || op != Op::conj_trans,
          "syrk: op is no_trans or trans for complex matrices; herk conjugates");
  const Op other = op == Op::no_trans ? Op::trans : Op::no_trans;
  submit_rank_update(rt, uplo, op, other, T(alpha), a, T(beta), c,
                     [&](const Data<Matrix<T>>& a_ik, T once, const Data<Matrix<T>>& c_ii) {
                       rt.submit(syrk_codelet<T>(), uplo, op, T(alpha), read(a_ik), once, read_write(c_ii));
                     });
}

#define INSTANTIATE(T)                                                                                             \
  template void submit_herk<T>(Runtime&, Uplo, Op, Real<T>, const TiledData<T>&, Real<T>, TiledData<T>&);          \
  template void submit_syrk<T>(Runtime&, Uplo, Op, T, const TiledData<T>&, T, TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
