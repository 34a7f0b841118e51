// tandem/linalg/flows/geqrf.cpp: the tiled QR with a flat tree (Buttari, Langou, Kurzak, Dongarra: A class of parallel
// tiled linear algebra algorithms for multicore architectures, Parallel Computing 35, 2009, section 2.2).
#include "tandem/linalg/flows/geqrf.hpp"

#include <algorithm>

#include "tandem/dist/flow.hpp"
#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/own_tiles.hpp"
#include "tandem/linalg/flows/qr_codelets.hpp"
#include "tandem/linalg/flows/qr_priorities.hpp"
#include "tandem/linalg/flows/qr_shapes.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {

using namespace internal;

TileShape geqrf_factors_shape(const TileShape& a, std::size_t ib) {
  TANDEM_ASSERT(ib > 0 && ib <= block_reflector_max);
  const std::size_t nb = a.tile, height = std::min(ib, nb), row_tiles = (a.rows + nb - 1) / nb;
  return {.rows = row_tiles * height,
          .cols = std::min(a.cols, row_tiles * nb),
          .tile = nb,
          .distribution = a.distribution,
          .rank = a.rank,
          .tile_rows = height};
}

namespace {

/// The columns in which this rank must submit updates: a tile of A concerns it (tiles of A move from rank to rank), or
/// a tile of T, where the panel's tasks may run.
template <Scalar T>
std::vector<std::uint32_t> own_columns(const OwnTiles& a, const OwnTiles& t, const TiledData<T>& stored) {
  std::vector<std::uint32_t> columns;
  if (a.everything() || t.everything()) return columns;
  for (std::size_t j = 0; j < stored.col_tiles(); ++j) {
    const bool in_t = std::binary_search(t.cols().begin(), t.cols().end(), j);
    if (!a.col(j).empty() || in_t) columns.push_back(static_cast<std::uint32_t>(j));
  }
  return columns;
}

}  // namespace

template <Scalar T>
void submit_geqrf(Runtime& rt, TiledData<T>& a, TiledData<T>& t) {
  require(is_general(a), "geqrf: A has to store all its tiles");
  require(has_factors_shape(t, a), "geqrf: T has to be of A's geqrf_factors_shape");
  const std::size_t mt = a.row_tiles(), nt = a.col_tiles();
  const QrPriorities level({.rows = mt, .cols = nt});
  constexpr Op conj_trans = Op::conj_trans;
  const OwnTiles own_a(rt, a, OwnTiles::Use::written), own_t(rt, t, OwnTiles::Use::written);
  const bool all = own_a.everything() || own_t.everything() || rt.flow()->has_placement();
  const std::vector<std::uint32_t> columns = own_columns(own_a, own_t, a);
  for (std::size_t k = 0; k < std::min(mt, nt); ++k) {
    const auto iteration = rt.iteration(k);
    // A(k,k) = Q(k,k) R(k,k)
    rt.submit({.priority = level.geqrt(k)}, geqrt_codelet<T>(), read_write(a(k, k)), write(t(k, k)));
    for (std::size_t j = k + 1; j < nt; ++j) {
      // A(k,j) := Q(k,k)^H A(k,j)
      rt.submit({.priority = level.unmqr(k, j)}, unmqr_codelet<T>(), conj_trans, read(a(k, k)), read(t(k, k)),
                read_write(a(k, j)));
    }
    for (std::size_t i = k + 1; i < mt; ++i) {
      // [R(k,k); A(i,k)] = Q(i,k) [R(k,k); 0]
      rt.submit({.priority = level.tpqrt(k, i)}, tpqrt_codelet<T>(), read_write(a(k, k)), read_write(a(i, k)),
                write(t(i, k)));
      // A rank with tiles of column j submits the whole column, one with the reflectors all columns; the last task
      // leaves A(k,j).
      const bool sees_all = all || i == mt - 1 || rt.concerned_by(read(a(i, k)), read(t(i, k)));
      for_tasks_of(rt, k + 1, nt, sees_all ? TaskIndices::all() : TaskIndices{columns}, [&](std::size_t j) {
        // [A(k,j); A(i,j)] := Q(i,k)^H [A(k,j); A(i,j)]
        rt.submit({.priority = level.tpmqrt(k, i, j)}, tpmqrt_codelet<T>(), conj_trans, read(a(i, k)), read(t(i, k)),
                  read_write(a(k, j)), read_write(a(i, j)));
      });
    }
  }
}

#define INSTANTIATE(T) template void submit_geqrf<T>(Runtime&, TiledData<T>&, TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
