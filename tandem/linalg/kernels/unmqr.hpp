// tandem/linalg/kernels/unmqr.hpp: apply the unitary factor of one tile to another from the left.
#pragma once

#include <type_traits>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// C := op(Q) C with the Q whose reflectors geqrt left in `v` and `t` (LAPACK's unmqr, and in real types ormqr, in
/// geqrt's blocks: gemqrt). Only elements of V below the diagonal are read; C has V's rows. `op` is no_trans or
/// conj_trans. Sequential; allocates nothing.
template <Scalar T>
void unmqr(Op op, std::type_identity_t<MatrixView<const T>> v, std::type_identity_t<MatrixView<const T>> t,
           MatrixView<T> c);

}  // namespace tandem::linalg::kernels
