// tandem/linalg/flows/lacpy.cpp: one task per tile.
#include "tandem/linalg/flows/lacpy.hpp"

#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/codelets.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {

using namespace internal;

template <Scalar T>
void submit_lacpy(Runtime& rt, Uplo uplo, const TiledData<T>& a, TiledData<T>& b) {
  const TileMatrix<T>&ma = a.matrix(), &mb = b.matrix();
  require(ma.rows() == mb.rows() && ma.cols() == mb.cols() && ma.tile_size() == mb.tile_size() &&
              ma.tile_height() == mb.tile_height(),
          "lacpy: the shapes of A and B differ");
  const auto stores_part = [uplo](Uplo stored) { return stored == Uplo::general || stored == uplo; };
  require(stores_part(ma.uplo()) && stores_part(mb.uplo()), "lacpy: A or B does not store the part that is copied");
  for (std::size_t j = 0; j < a.col_tiles(); ++j) {
    for (std::size_t i = 0; i < a.row_tiles(); ++i) {
      const bool inside = uplo == Uplo::general || (uplo == Uplo::lower ? i >= j : i <= j);
      if (!inside) continue;
      if (i == j && uplo != Uplo::general) {
        rt.submit(lacpy_codelet<T>(), uplo, read(a(i, j)), read_write(b(i, j)));
      } else {
        rt.submit(lacpy_codelet<T>(), Uplo::general, read(a(i, j)), write(b(i, j)));
      }
    }
  }
}

#define INSTANTIATE(T) template void submit_lacpy<T>(Runtime&, Uplo, const TiledData<T>&, TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
