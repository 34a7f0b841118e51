// tandem/linalg/flows/gemm.cpp: one chain of products per tile of C.
#include "tandem/linalg/flows/gemm.hpp"

#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/codelets.hpp"
#include "tandem/linalg/flows/own_tiles.hpp"
#include "tandem/linalg/flows/scale.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {

using namespace internal;

template <Scalar T>
void submit_gemm(Runtime& rt, Op op_a, Op op_b, std::type_identity_t<T> alpha, const TiledData<T>& a,
                 const TiledData<T>& b, std::type_identity_t<T> beta, TiledData<T>& c) {
  const TileMatrix<T>&ma = a.matrix(), &mb = b.matrix(), &mc = c.matrix();
  require(is_general(a) && is_general(b) && is_general(c), "gemm: the matrices have to store all their tiles");
  require(ma.tile_size() == mc.tile_size() && mb.tile_size() == mc.tile_size(), "gemm: the tile sizes differ");
  require(op_rows(op_a, ma.rows(), ma.cols()) == mc.rows() && op_cols(op_b, mb.rows(), mb.cols()) == mc.cols() &&
              op_cols(op_a, ma.rows(), ma.cols()) == op_rows(op_b, mb.rows(), mb.cols()),
          "gemm: the dimensions of op(A), op(B) and C do not fit");
  const std::size_t kt = op_cols(op_a, a.row_tiles(), a.col_tiles());
  if (kt == 0) return submit_scale(rt, Uplo::general, beta, c);
  const OwnTiles own_a(rt, a, OwnTiles::Use::read), own_b(rt, b, OwnTiles::Use::read),
      own_c(rt, c, OwnTiles::Use::written);
  const bool all = own_a.everything() || own_b.everything() || own_c.everything();
  const LastIndex last(kt);
  for (std::size_t j = 0; j < c.col_tiles(); ++j) {
    for (std::size_t i = 0; i < c.row_tiles(); ++i) {
      // If another rank owns C(i,j): the tasks that read a tile of this rank, and the last one, which writes the final
      // C(i,j).
      const TaskIndices products =
          all || own_c.has(i, j) ? TaskIndices::all()
                                 : TaskIndices{op_a == Op::no_trans ? own_a.row(i) : own_a.col(i),
                                               op_b == Op::no_trans ? own_b.col(j) : own_b.row(j), last.list()};
      for_tasks_of(rt, 0, kt, products, [&](std::size_t k) {
        // C(i,j) := alpha op(A)(i,k) op(B)(k,j) + beta C(i,j), and beta once only
        const auto& a_ik = op_a == Op::no_trans ? a(i, k) : a(k, i);
        const auto& b_kj = op_b == Op::no_trans ? b(k, j) : b(j, k);
        rt.submit({.priority = static_cast<int>(kt - k)}, gemm_codelet<T>(), op_a, op_b, T(alpha), read(a_ik),
                  read(b_kj), k == 0 ? T(beta) : T(1), read_write(c(i, j)), no_info);
      });
    }
  }
}

#define INSTANTIATE(T) \
  template void submit_gemm<T>(Runtime&, Op, Op, T, const TiledData<T>&, const TiledData<T>&, T, TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
