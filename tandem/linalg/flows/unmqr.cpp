// tandem/linalg/flows/unmqr.cpp: geqrf's steps on other columns; for Q itself in reverse order.
#include "tandem/linalg/flows/unmqr.hpp"

#include <algorithm>

#include "tandem/dist/flow.hpp"
#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/own_tiles.hpp"
#include "tandem/linalg/flows/qr_codelets.hpp"
#include "tandem/linalg/flows/qr_shapes.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {
namespace {

using namespace internal;

// The longest path, in units of nb^3 / 3 operations, goes through a task of 12 per remaining row and step.
int level(std::size_t rows_left, std::size_t steps_left) { return 12 * static_cast<int>(rows_left + steps_left); }

/// The updates that this rank submits: all with its own reflectors, all in columns of C in which it has tiles (they
/// move from rank to rank), and those that write a tile of C last.
template <Scalar T>
class OwnUpdates {
 public:
  OwnUpdates(Runtime& rt, const TiledData<T>& a, const TiledData<T>& t, const TiledData<T>& c)
      : a_(rt, a, OwnTiles::Use::read),
        t_(rt, t, OwnTiles::Use::read),
        c_(rt, c, OwnTiles::Use::written),
        all_(a_.everything() || t_.everything() || c_.everything() || rt.flow()->has_placement()) {}

  TaskIndices columns(std::size_t i, std::size_t k, bool last) const {
    return all_ || last || a_.has(i, k) || t_.has(i, k) ? TaskIndices::all() : TaskIndices{c_.cols()};
  }

 private:
  const OwnTiles a_, t_, c_;
  const bool all_;
};

/// Q^H C: with Q = Q(0,0) Q(1,0) ... Q(1,1) Q(2,1) ..., in the order of the factorisation.
template <Scalar T>
void submit_conj_trans(Runtime& rt, const TiledData<T>& a, const TiledData<T>& t, TiledData<T>& c) {
  const std::size_t mt = a.row_tiles(), steps = std::min(mt, a.col_tiles());
  const OwnUpdates<T> own(rt, a, t, c);
  for (std::size_t k = 0; k < steps; ++k) {
    const auto iteration = rt.iteration(k);
    for (std::size_t j = 0; j < c.col_tiles(); ++j) {
      // C(k,j) := Q(k,k)^H C(k,j)
      rt.submit({.priority = level(mt - k, steps - k)}, unmqr_codelet<T>(), Op::conj_trans, read(a(k, k)),
                read(t(k, k)), read_write(c(k, j)));
    }
    for (std::size_t i = k + 1; i < mt; ++i) {
      const bool last = i == mt - 1 || k == steps - 1;
      for_tasks_of(rt, 0, c.col_tiles(), own.columns(i, k, last), [&](std::size_t j) {
        // [C(k,j); C(i,j)] := Q(i,k)^H [C(k,j); C(i,j)]
        rt.submit({.priority = level(mt - i, steps - k)}, tpmqrt_codelet<T>(), Op::conj_trans, read(a(i, k)),
                  read(t(i, k)), read_write(c(k, j)), read_write(c(i, j)));
      });
    }
  }
}

/// Q C: applies the last factor of Q first.
template <Scalar T>
void submit_no_trans(Runtime& rt, const TiledData<T>& a, const TiledData<T>& t, TiledData<T>& c) {
  const std::size_t mt = a.row_tiles(), steps = std::min(mt, a.col_tiles());
  const OwnUpdates<T> own(rt, a, t, c);
  for (std::size_t k = steps; k-- > 0;) {
    const auto iteration = rt.iteration(k);
    for (std::size_t i = mt; i-- > k + 1;) {
      for_tasks_of(rt, 0, c.col_tiles(), own.columns(i, k, k == 0), [&](std::size_t j) {
        // [C(k,j); C(i,j)] := Q(i,k) [C(k,j); C(i,j)]
        rt.submit({.priority = level(i + 1, k)}, tpmqrt_codelet<T>(), Op::no_trans, read(a(i, k)), read(t(i, k)),
                  read_write(c(k, j)), read_write(c(i, j)));
      });
    }
    for (std::size_t j = 0; j < c.col_tiles(); ++j) {
      // C(k,j) := Q(k,k) C(k,j)
      rt.submit({.priority = level(k + 1, k)}, unmqr_codelet<T>(), Op::no_trans, read(a(k, k)), read(t(k, k)),
                read_write(c(k, j)));
    }
  }
}

}  // namespace

template <Scalar T>
void submit_unmqr(Runtime& rt, Op op, const TiledData<T>& a, const TiledData<T>& t, TiledData<T>& c) {
  require(!is_complex<T> || op != Op::trans, "unmqr: op is no_trans or conj_trans for complex matrices");
  require(is_general(a) && is_general(c), "unmqr: the matrices have to store all their tiles");
  require(has_factors_shape(t, a), "unmqr: T has to be of A's geqrf_factors_shape");
  require(a.matrix().tile_size() == c.matrix().tile_size(), "unmqr: the tile sizes differ");
  require(a.matrix().rows() == c.matrix().rows(), "unmqr: C has to have A's rows");
  if (op == Op::no_trans) {
    submit_no_trans(rt, a, t, c);
  } else {
    submit_conj_trans(rt, a, t, c);
  }
}

#define INSTANTIATE(T) \
  template void submit_unmqr<T>(Runtime&, Op, const TiledData<T>&, const TiledData<T>&, TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
