// tandem/linalg/generators.hpp: test matrices as functions of (i, j), so that any tile can be made anywhere and in any
// order.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "tandem/base/splitmix64.hpp"
#include "tandem/linalg/types.hpp"
#include "tandem/runtime/data/views.hpp"

namespace tandem::linalg {

namespace internal {

constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t i, std::uint64_t j, std::uint64_t part) noexcept {
  constexpr std::uint64_t step = base::kSplitMix64Step;
  return base::mix64(base::mix64(base::mix64(seed + step) + (i + 1) * step) + (2 * j + part + 1) * step);
}

/// Uniform in [-1, 1), from as many leading bits as R has, so that an element is equal in two precisions up to
/// rounding.
template <class R>
constexpr R random_unit(std::uint64_t bits) noexcept {
  constexpr int digits = std::numeric_limits<R>::digits;
  return static_cast<R>(bits >> (64 - digits)) / static_cast<R>(std::uint64_t(1) << (digits - 1)) - R(1);
}

}  // namespace internal

/// Independent elements, uniform in [-1, 1); in complex types both parts are. Also for right-hand sides.
struct RandomGeneral {
  std::uint64_t seed = 0;  ///< equal seeds give equal matrices

  /// Element (i, j), counted from 0.
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    const auto part = [&](std::uint64_t which) {
      return internal::random_unit<Real<T>>(internal::random_bits(seed, i, j, which));
    };
    if constexpr (is_complex<T>) {
      return T(part(0), part(1));
    } else {
      return part(0);
    }
  }
};

/// Hermitian (symmetric in real types): elements below the diagonal of modulus at most 1 at random, and
/// `dominance * order` on the diagonal. Strictly diagonally dominant, so positive definite, when dominance is 1 or
/// more; then its condition is near 1. Smaller values come near the edge 2 / sqrt(3 order) where it ceases to be
/// positive definite.
struct RandomPositiveDefinite {
  std::uint64_t seed = 0;  ///< equal seeds give equal matrices
  std::size_t order = 0;   ///< rows and columns of the matrix
  double dominance = 1;    ///< diagonal elements are `dominance * order`

  /// Element (i, j), counted from 0.
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    if (i == j) return T(static_cast<Real<T>>(dominance * static_cast<double>(order)));
    const T below = RandomGeneral{seed}.element<T>(std::max(i, j), std::min(i, j));
    // Both parts of a complex element reach 1 and its modulus the square root of 2.
    const T scaled = is_complex<T> ? below * static_cast<Real<T>>(0.70710678118654752) : below;
    return i > j ? scaled : conj(scaled);
  }
};

/// General: elements beside the diagonal of modulus at most 1 at random, and `order` on the diagonal. Strictly
/// diagonally dominant, so that elimination needs no pivoting; its condition is near 1.
struct RandomDominant {
  std::uint64_t seed = 0;  ///< equal seeds give equal matrices
  std::size_t order = 0;   ///< rows and columns of the matrix

  /// Element (i, j), counted from 0.
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    if (i == j) return T(static_cast<Real<T>>(order));
    const T beside = RandomGeneral{seed}.element<T>(i, j);
    // Both parts of a complex element reach 1 and its modulus the square root of 2.
    return is_complex<T> ? beside * static_cast<Real<T>>(0.70710678118654752) : beside;
  }
};

/// Kac, Murdock and Szego: a_ij = rho^|i - j|. Positive definite for |rho| < 1 with condition below ((1 + rho) / (1 -
/// rho))^2, and its Cholesky factor is known: l_ij = rho^(i-j), times sqrt(1 - rho^2) for j > 0.
struct Kms {
  double rho = 0.5;  ///< a_ij for |i - j| = 1

  /// Element (i, j), counted from 0.
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    return T(static_cast<Real<T>>(std::pow(rho, static_cast<double>(i > j ? i - j : j - i))));
  }
};

/// Hilbert's matrix a_ij = 1 / (i + j + 1): positive definite, with a condition that grows like 33^n.
struct Hilbert {
  /// Element (i, j), counted from 0.
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    return T(Real<T>(1) / static_cast<Real<T>>(i + j + 1));
  }
};

/// a_ij = min(i, j) + 1, whose Cholesky factor has ones everywhere, and which elimination factorises without rounding.
struct MinIj {
  /// Element (i, j), counted from 0.
  template <Scalar T>
  T element(std::size_t i, std::size_t j) const noexcept {
    return T(static_cast<Real<T>>(std::min(i, j) + 1));
  }
};

/// Gives the elements of a matrix by position, always equal ones, on any thread.
template <class G, class T>
concept Generator = Scalar<T> && requires(const G& generator, std::size_t i, std::size_t j) {
  { generator.template element<T>(i, j) } -> std::same_as<T>;
};

/// The position of a tile's first element in its matrix.
struct TilePosition {
  std::size_t row = 0;  ///< in elements, from 0
  std::size_t col = 0;  ///< in elements, from 0
};

/// Fills a tile with the generator's elements from `at` on. Sequential.
template <class G, Scalar T>
  requires Generator<G, T>
void generate_tile(const G& generator, TilePosition at, MatrixView<T> tile) noexcept {
  for (std::size_t j = 0; j < tile.cols; ++j)
    for (std::size_t i = 0; i < tile.rows; ++i) tile(i, j) = generator.template element<T>(at.row + i, at.col + j);
}

}  // namespace tandem::linalg
