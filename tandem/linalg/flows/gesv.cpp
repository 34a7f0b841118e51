// tandem/linalg/flows/gesv.cpp: one flow after the other; shapes are checked before anything is submitted.
#include "tandem/linalg/flows/gesv.hpp"

#include "tandem/linalg/flows/check_shapes.hpp"
#include "tandem/linalg/flows/getrf.hpp"
#include "tandem/linalg/flows/getrf_nopiv.hpp"
#include "tandem/linalg/flows/getrs.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg {

using namespace internal;

template <Scalar T>
void submit_gesv(Runtime& rt, TiledData<T>& a, TiledPivots& pivots, TiledData<T>& b, Info& info) {
  require_system("gesv", a, b);
  submit_getrf(rt, a, pivots, info);
  submit_getrs(rt, a, pivots, b, &info);
}

template <Scalar T>
std::size_t gesv(Runtime& rt, TiledData<T>& a, TiledPivots& pivots, TiledData<T>& b) {
  Info info;
  submit_gesv(rt, a, pivots, b, info);
  rt.wait();
  return info.value();
}

template <Scalar T>
void submit_gesv_nopiv(Runtime& rt, TiledData<T>& a, TiledData<T>& b, Info& info) {
  require_system("gesv", a, b);
  submit_getrf_nopiv(rt, a, info);
  submit_getrs_nopiv(rt, a, b, &info);
}

template <Scalar T>
std::size_t gesv_nopiv(Runtime& rt, TiledData<T>& a, TiledData<T>& b) {
  Info info;
  submit_gesv_nopiv(rt, a, b, info);
  rt.wait();
  return info.value();
}

#define INSTANTIATE(T)                                                                          \
  template void submit_gesv<T>(Runtime&, TiledData<T>&, TiledPivots&, TiledData<T>&, Info&);    \
  template std::size_t gesv<T>(Runtime&, TiledData<T>&, TiledPivots&, TiledData<T>&);           \
  template void submit_gesv_nopiv<T>(Runtime&, TiledData<T>&, TiledData<T>&, Info&);            \
  template std::size_t gesv_nopiv<T>(Runtime&, TiledData<T>&, TiledData<T>&);
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg
