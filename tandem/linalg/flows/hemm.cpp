// tandem/linalg/flows/hemm.cpp: the part of A that is not stored is the conjugate transpose of the stored part.
#include "tandem/linalg/flows/hemm.hpp"

#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/codelets.hpp"
#include "tandem/linalg/flows/own_tiles.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {

using namespace internal;

template <Scalar T>
void submit_hemm(Runtime& rt, Uplo uplo, std::type_identity_t<T> alpha, const TiledData<T>& a, const TiledData<T>& b,
                 std::type_identity_t<T> beta, TiledData<T>& c) {
  const TileMatrix<T>&ma = a.matrix(), &mb = b.matrix(), &mc = c.matrix();
  require(has_triangle(a, uplo), "hemm: A has to be square and store its triangle");
  require(is_general(b) && is_general(c), "hemm: B and C have to store all their tiles");
  require(ma.tile_size() == mc.tile_size() && mb.tile_size() == mc.tile_size(), "hemm: the tile sizes differ");
  require(ma.rows() == mc.rows() && mb.rows() == mc.rows() && mb.cols() == mc.cols(),
          "hemm: the dimensions of A, B and C do not fit");
  const OwnTiles own_a(rt, a, OwnTiles::Use::read), own_b(rt, b, OwnTiles::Use::read),
      own_c(rt, c, OwnTiles::Use::written);
  const bool all = own_a.everything() || own_b.everything() || own_c.everything();
  const LastIndex last(a.row_tiles());
  for (std::size_t j = 0; j < c.col_tiles(); ++j) {
    for (std::size_t i = 0; i < c.row_tiles(); ++i) {
      // As in gemm; row i of A is stored in row i and in column i.
      const TaskIndices products = all || own_c.has(i, j)
                                       ? TaskIndices::all()
                                       : TaskIndices{own_a.row(i), own_a.col(i), own_b.col(j), last.list()};
      for_tasks_of(rt, 0, a.row_tiles(), products, [&](std::size_t k) {
        const T once = k == 0 ? T(beta) : T(1);
        if (i == k) {
          rt.submit(hemm_codelet<T>(), uplo, T(alpha), read(a(i, i)), read(b(k, j)), once, read_write(c(i, j)));
        } else {
          // A(i,k) is stored, or A(k,i) and A(i,k) = A(k,i)^H.
          const bool stored = (i > k) == (uplo == Uplo::lower);
          rt.submit(gemm_codelet<T>(), stored ? Op::no_trans : Op::conj_trans, Op::no_trans, T(alpha),
                    read(stored ? a(i, k) : a(k, i)), read(b(k, j)), once, read_write(c(i, j)), no_info);
        }
      });
    }
  }
}

#define INSTANTIATE(T) \
  template void submit_hemm<T>(Runtime&, Uplo, T, const TiledData<T>&, const TiledData<T>&, T, TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
