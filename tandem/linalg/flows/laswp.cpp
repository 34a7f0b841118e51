// tandem/linalg/flows/laswp.cpp: panel by panel, tile column by tile column.
#include "tandem/linalg/flows/laswp.hpp"

#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/lu_codelets.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {

namespace internal {

template <Scalar T>
void submit_interchanges(Runtime& rt, const TiledPivots& pivots, PanelColumn where, TiledData<T>& a, const Info* info) {
  const std::size_t k = where.panel, j = where.column, nb = a.matrix().tile_size();
  for (std::size_t i = k + 1; i < a.row_tiles(); ++i)
    rt.submit({.priority = where.priority}, exchange_codelet<T>(), read(pivots.exchanges(k)), (i - k) * nb,
              read_write(a(k, j)), read_write(a(i, j)), info);
  rt.submit({.priority = where.priority}, interchange_codelet<T>(), read(pivots.exchanges(k)), read_write(a(k, j)),
            info);
}

}  // namespace internal

using namespace internal;

template <Scalar T>
void submit_laswp(Runtime& rt, const TiledPivots& pivots, TiledData<T>& b, const Info* after) {
  require(is_general(b), "laswp: the matrix has to store all its tiles");
  require(pivots.shape().rows == b.matrix().rows() && pivots.shape().tile == b.matrix().tile_size(),
          "laswp: the rows or the tile size of the matrix are not those that the pivots are for");
  const int panels = static_cast<int>(pivots.panels());
  for (std::size_t k = 0; k < pivots.panels(); ++k)
    for (std::size_t j = 0; j < b.col_tiles(); ++j)
      submit_interchanges(rt, pivots, {.panel = k, .column = j, .priority = panels - static_cast<int>(k)}, b, after);
}

#define INSTANTIATE(T)                                                                                     \
  template void internal::submit_interchanges<T>(Runtime&, const TiledPivots&, PanelColumn, TiledData<T>&, \
                                                 const Info*);                                             \
  template void submit_laswp<T>(Runtime&, const TiledPivots&, TiledData<T>&, const Info*);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
