// tandem/linalg/flows/getrs.cpp: interchanges of rows, then two triangular solves.
#include "tandem/linalg/flows/getrs.hpp"

#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/laswp.hpp"
#include "tandem/linalg/flows/trsm.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {

using namespace internal;

template <Scalar T>
void submit_getrs(Runtime& rt, const TiledData<T>& factors, const TiledPivots& pivots, TiledData<T>& b,
                  const Info* after) {
  require_system("getrs", factors, b);
  submit_laswp(rt, pivots, b, after);         // B := P B
  submit_getrs_nopiv(rt, factors, b, after);  // L U X = P B
}

template <Scalar T>
void getrs(Runtime& rt, const TiledData<T>& factors, const TiledPivots& pivots, TiledData<T>& b) {
  submit_getrs(rt, factors, pivots, b);
  rt.wait();
}

template <Scalar T>
void submit_getrs_nopiv(Runtime& rt, const TiledData<T>& factors, TiledData<T>& b, const Info* after) {
  require_system("getrs", factors, b);
  submit_trsm(rt, Side::left, Uplo::lower, Op::no_trans, Diag::unit, T(1), factors, b, after);      // L Y = B
  submit_trsm(rt, Side::left, Uplo::upper, Op::no_trans, Diag::non_unit, T(1), factors, b, after);  // U X = Y
}

template <Scalar T>
void getrs_nopiv(Runtime& rt, const TiledData<T>& factors, TiledData<T>& b) {
  submit_getrs_nopiv(rt, factors, b);
  rt.wait();
}

#define INSTANTIATE(T)                                                                                            \
  template void submit_getrs<T>(Runtime&, const TiledData<T>&, const TiledPivots&, TiledData<T>&, const Info*);   \
  template void getrs<T>(Runtime&, const TiledData<T>&, const TiledPivots&, TiledData<T>&);                       \
  template void submit_getrs_nopiv<T>(Runtime&, const TiledData<T>&, TiledData<T>&, const Info*);                 \
  template void getrs_nopiv<T>(Runtime&, const TiledData<T>&, TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
