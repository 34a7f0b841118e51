// tandem/linalg/flows/residuals.hpp: how well results satisfy their equations, in the units of LAPACK's test programs.
#pragma once

#include <cstddef>
#include <type_traits>

#include "tandem/linalg/tiled_data.hpp"
#include "tandem/linalg/tiled_pivots.hpp"

namespace tandem::linalg {

/// A backward stable algorithm reaches about 1; LAPACK's testers accept up to this.
inline constexpr double residual_limit = 30;

/// difference / (size * n * eps), where size is a norm, or a product of norms, of what was given. 0 when the difference
/// is 0; 1 / eps when it is not although the size is 0.
template <class R>
R scaled_residual(R difference, R size, std::size_t n, R eps) noexcept {
  if (difference == 0) return 0;
  if (size == 0 || n == 0) return 1 / eps;
  return difference / (size * static_cast<R>(n) * eps);
}

// Each function submits and waits, and uses the matrix that it takes by non-const reference as work space.

/// || A - L L^H ||_1 / (n ||A||_1 eps), or with U^H U (LAPACK's dpot01). `a` holds A's triangle and is overwritten.
template <Scalar T>
Real<T> potrf_residual(Runtime& rt, Uplo uplo, TiledData<T>& a, const TiledData<T>& factor);

/// || B - A X ||_1 / (n ||A||_1 ||X||_1 eps) for Hermitian A (LAPACK's dpot02). `b` is overwritten.
template <Scalar T>
Real<T> posv_residual(Runtime& rt, Uplo uplo, const TiledData<T>& a, const TiledData<T>& x, TiledData<T>& b);

/// || P A - L U ||_1 / (n ||A||_1 eps) for the factors and pivots of an m x n matrix (LAPACK's dget01). `a` holds A and is
/// overwritten.
template <Scalar T>
Real<T> getrf_residual(Runtime& rt, TiledData<T>& a, const TiledData<T>& factors, const TiledPivots& pivots);

/// || A - L U ||_1 / (n ||A||_1 eps) for factors without pivoting. `a` holds A and is overwritten.
template <Scalar T>
Real<T> getrf_nopiv_residual(Runtime& rt, TiledData<T>& a, const TiledData<T>& factors);

/// || B - A X ||_1 / (n ||A||_1 ||X||_1 eps) for general A (LAPACK's dget02). `b` is overwritten.
template <Scalar T>
Real<T> gesv_residual(Runtime& rt, const TiledData<T>& a, const TiledData<T>& x, TiledData<T>& b);

/// || alpha B - op(A) X ||_1 / (n ||A||_1 ||X||_1 eps) for a triangular A in `triangle`, a general matrix with zeros in the other
/// triangle (and ones on the diagonal of a unit one). `b` is overwritten.
template <Scalar T>
Real<T> trsm_residual(Runtime& rt, Op op, std::type_identity_t<T> alpha, const TiledData<T>& triangle,
                      const TiledData<T>& x, TiledData<T>& b);

/// The product whose result is checked, without C_0.
template <Scalar T>
struct Product {
  Op op_a = Op::no_trans;  ///< how A enters
  Op op_b = Op::no_trans;  ///< how B enters
  T alpha = T(1);          ///< factor of op(A) op(B)
  const TiledData<T>& a;   ///< the first factor
  const TiledData<T>& b;   ///< the second factor
  T beta = T(0);           ///< factor of C_0
};

/// max |(alpha op(A) (op(B) W) + beta C_0 W) - C W| / (n (k |alpha| max|A| max|B| + |beta| max|C_0|) eps), with a
/// random W of at most eight columns and n rows of elements up to 1: all of C is checked at a fraction of the product's
/// cost (Freivalds, Probabilistic machines can use less running time, IFIP 1977). All general; k terms per element;
/// `before` is C_0.
template <Scalar T>
Real<T> gemm_residual(Runtime& rt, const Product<T>& product, const TiledData<T>& before, const TiledData<T>& c);

/// Whether the triangle that is not stored mirrors the stored one as it is (A^T = A) or conjugated (A^H = A).
enum class Mirror { symmetric, hermitian };

/// Submits B := all of A, of which the `uplo` triangle is stored; B is general and of A's dimensions. So gemm_residual
/// can check rank-k updates.
template <Scalar T>
void submit_expand(Runtime& rt, Uplo uplo, Mirror mirror, const TiledData<T>& a, TiledData<T>& b);

/// || A - Q R ||_1 / (max(m, n) ||A||_1 eps) for what geqrf left in `factor` and `t`, by Q applied to R (LAPACK's dqrt01 takes
/// Q^H A - R instead). `a` holds the m x n A and is overwritten.
template <Scalar T>
Real<T> geqrf_residual(Runtime& rt, TiledData<T>& a, const TiledData<T>& factor, const TiledData<T>& t);

/// || Q^H (Q W) - W ||_1 / (m ||W||_1 eps), with a random W of at most eight columns: that Q is unitary.
template <Scalar T>
Real<T> geqrf_orthogonality(Runtime& rt, const TiledData<T>& factor, const TiledData<T>& t);

/// How well gels solved, for the m x n A, m >= n, and the B that it was given, which is overwritten; X is what it left
/// in B.
///   no_trans    || A^H (B - A X) ||_1 / (max(m, nrhs) ||A||_1 (||A||_1 ||X||_1 + ||B||_1) eps): the residual is orthogonal to
///               A's columns (LAPACK's dqrt17, which has ||B|| only, and so finds fault with large solutions)
///   conj_trans  || B - A^H X ||_1 / (m ||A||_1 ||X||_1 eps), in B's first n rows (LAPACK's dqrt16)
template <Scalar T>
Real<T> gels_residual(Runtime& rt, Op op, const TiledData<T>& a, const TiledData<T>& x, TiledData<T>& b);

}  // namespace tandem::linalg
