// tandem/linalg/kernels/norms.hpp: norms of a tile, and the sums from which the one-norm of a tiled matrix is made.
#pragma once

#include <span>
#include <type_traits>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// A norm of a general matrix; 0 when it is empty. The Frobenius norm neither over- nor underflows needlessly. A NaN in
/// A gives NaN. Allocates for Norm::inf only.
template <Scalar T>
Real<T> lange(Norm norm, MatrixView<const T> a);

/// A norm of a Hermitian matrix (symmetric in real types) of which only the `uplo` triangle is read.
template <Scalar T>
Real<T> lanhe(Norm norm, Uplo uplo, MatrixView<const T> a);

template <Scalar T>
Real<T> lange(Norm norm, MatrixView<T> a) {
  return lange(norm, MatrixView<const T>(a));
}
template <Scalar T>
Real<T> lanhe(Norm norm, Uplo uplo, MatrixView<T> a) {
  return lanhe(norm, uplo, MatrixView<const T>(a));
}

/// sums_j += sum_i |a_ij|; `sums` has A's columns.
template <Scalar T>
void add_column_sums(std::type_identity_t<MatrixView<const T>> a, std::span<Real<T>> sums);

/// sums_i += sum_j |a_ij|; `sums` has A's rows.
template <Scalar T>
void add_row_sums(std::type_identity_t<MatrixView<const T>> a, std::span<Real<T>> sums);

/// sums_j += sum_i |a_ij| over all rows of the Hermitian matrix whose `uplo` triangle A holds.
template <Scalar T>
void add_hermitian_sums(Uplo uplo, std::type_identity_t<MatrixView<const T>> a, std::span<Real<T>> sums);

}  // namespace tandem::linalg::kernels
