// tandem/linalg/flows/unmqr.hpp: apply the unitary factor of a tiled QR factorisation.
#pragma once

#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// Submits C := op(Q) C with the Q that geqrf left in `a`, m x n, and `t`; C is general, has m rows and A's tile size.
/// `op` is no_trans or conj_trans; in real types trans too. Only elements below A's diagonal are read. UsageError:
/// shapes that do not fit, trans of a complex Q.
template <Scalar T>
void submit_unmqr(Runtime& rt, Op op, const TiledData<T>& a, const TiledData<T>& t, TiledData<T>& c);

/// Applies and waits.
template <Scalar T>
void unmqr(Runtime& rt, Op op, const TiledData<T>& a, const TiledData<T>& t, TiledData<T>& c) {
  submit_unmqr(rt, op, a, t, c);
  rt.wait();
}

}  // namespace tandem::linalg
