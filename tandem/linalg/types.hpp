// tandem/linalg/types.hpp: the four scalar types and LAPACK's option letters as types.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <limits>
#include <type_traits>

namespace tandem::linalg {

/// The element types of LAPACK's s, d, c and z routines.
template <class T>
concept Scalar = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::complex<float>> ||
                 std::same_as<T, std::complex<double>>;

namespace internal {
template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<std::complex<R>> {
  using type = R;
};
}  // namespace internal

/// The type of |x|: float for s and c, double for d and z.
template <Scalar T>
using Real = typename internal::RealOf<T>::type;

/// True for c and z.
template <Scalar T>
inline constexpr bool is_complex = !std::same_as<T, Real<T>>;

/// LAPACK's relative machine precision `lamch('E')`: half the distance from 1 to the next number.
template <Scalar T>
inline constexpr Real<T> epsilon = std::numeric_limits<Real<T>>::epsilon() / 2;

/// LAPACK's letter: 's', 'd', 'c' or 'z'.
template <Scalar T>
inline constexpr char precision_letter = is_complex<T> ? (sizeof(T) == 8 ? 'c' : 'z') : (sizeof(T) == 4 ? 's' : 'd');

/// The complex conjugate, and a real number unchanged (std::conj would make it complex).
template <Scalar T>
constexpr T conj(T x) noexcept {
  if constexpr (is_complex<T>) {
    return T(x.real(), -x.imag());
  } else {
    return x;
  }
}

/// The real part, and a real number unchanged.
template <Scalar T>
constexpr Real<T> real_part(T x) noexcept {
  if constexpr (is_complex<T>) {
    return x.real();
  } else {
    return x;
  }
}

/// a b by the textbook's formula. Like the BLAS, it omits the check of every result for the infinities of C's Annex G,
/// which makes std::complex's own product many times slower.
template <Scalar T>
constexpr T multiply(T a, T b) noexcept {
  if constexpr (is_complex<T>) {
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  } else {
    return a * b;
  }
}

/// Which part of a matrix is stored or referred to. `general`: all of it.
enum class Uplo : char { lower = 'L', upper = 'U', general = 'G' };

/// op(A) = A, A^T or A^H.
enum class Op : char { no_trans = 'N', trans = 'T', conj_trans = 'C' };

/// op(A) X = B (left) or X op(A) = B (right).
enum class Side : char { left = 'L', right = 'R' };

/// Whether a triangular matrix has ones on its diagonal, which are then not read.
enum class Diag : char { non_unit = 'N', unit = 'U' };

/// max |a_ij|; largest column sum; largest row sum; square root of the sum of squares.
enum class Norm : char { max = 'M', one = '1', inf = 'I', frobenius = 'F' };

/// The other triangle; general stays general.
constexpr Uplo opposite(Uplo uplo) noexcept {
  return uplo == Uplo::lower ? Uplo::upper : uplo == Uplo::upper ? Uplo::lower : Uplo::general;
}

}  // namespace tandem::linalg
