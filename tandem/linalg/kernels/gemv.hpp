// tandem/linalg/kernels/gemv.hpp: products of a tile and a vector.
#pragma once

#include <span>
#include <type_traits>

#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg::kernels {

/// y := op(A) x; x has op(A)'s columns and y its rows, and y is not read. Sequential, like hemv; safe from any thread.
template <Scalar T>
void gemv(Op op, std::type_identity_t<MatrixView<const T>> a, std::type_identity_t<std::span<const T>> x,
          std::span<T> y);

/// y := A x with A Hermitian (symmetric in real types), of which only the `uplo` triangle is read.
template <Scalar T>
void hemv(Uplo uplo, std::type_identity_t<MatrixView<const T>> a, std::type_identity_t<std::span<const T>> x,
          std::span<T> y);

/// The real part of x^H y, summed up in double whatever T is, so that squares of small numbers of single precision are
/// not lost.
template <Scalar T>
double real_dot(std::span<const T> x, std::type_identity_t<std::span<const T>> y) noexcept;

}  // namespace tandem::linalg::kernels
