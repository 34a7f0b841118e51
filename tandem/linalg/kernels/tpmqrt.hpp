// tandem/linalg/kernels/tpmqrt.hpp: apply the unitary factor of tpqrt to a pair of tiles from the left.
#pragma once

#include <type_traits>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// [A; B] := op(Q) [A; B] with the Q whose reflectors tpqrt left in `v`, m x n, and `t` (LAPACK's tpmqrt with L = 0,
/// also called tsmqr). A has at least n rows, of which the first n take part; B has V's rows and A's columns. `op` is
/// no_trans or conj_trans. Sequential; allocates nothing. Nearly all the work of a tiled QR factorisation.
template <Scalar T>
void tpmqrt(Op op, std::type_identity_t<MatrixView<const T>> v, std::type_identity_t<MatrixView<const T>> t,
            MatrixView<T> a, MatrixView<T> b);

}  // namespace tandem::linalg::kernels
