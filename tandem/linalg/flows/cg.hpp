// tandem/linalg/flows/cg.hpp: the method of conjugate gradients for a dense, tiled, Hermitian positive definite matrix.
#pragma once

#include <cstddef>
#include <optional>

#include "tandem/linalg/tiled_data.hpp"

namespace tandem::linalg {

/// When `cg` ends.
struct CgOptions {
  /// At most so many; the order of A unless given, which is enough without rounding.
  std::optional<std::size_t> iterations = {};
  std::optional<double> tolerance = {};        ///< ends when ||r|| <= tolerance ||b||, in 2-norms; 10 eps unless given
};

/// How cg ended. A numerical outcome is not an error.
struct CgOutcome {
  std::size_t iterations = 0;  ///< done
  /// ||r|| / ||b|| of the recurrence for r, which rounding makes differ from b - A x; ||r|| if b = 0.
  double residual = 0;
  bool converged = false;      ///< within the tolerance, or simulated
  /// 0, or k: p^H A p was not a positive number in iteration k, so A is not positive definite (or numbers overflowed,
  /// or are NaN). Then x is that of iteration k - 1.
  std::size_t info = 0;
};

/// Solves A X = B, with A n x n, Hermitian (symmetric in real types) and positive definite, of which the `uplo`
/// triangle is read where it lies; B and X n x 1, of A's tile size, in any distribution. X holds the first guess and is
/// replaced; A and B do not change. Submits and waits; the number of iterations is the same on every rank (Hestenes and
/// Stiefel: Methods of conjugate gradients for solving linear systems, J. Res. NBS 49, 1952, section 3):
///
///   r := b - A x,  p := r,  rho := r^H r,  and then
///   q := A p,  alpha := rho / (p^H q),  x := x + alpha p,  r := r - alpha q,  rho' := r^H r,  p := r + (rho' / rho) p
///
/// Each stored tile is read once per iteration, for its products with two blocks of p, on the rank that has it; ranks
/// send only blocks of vectors and scalars. Trees of tasks compute sums over tiles. Their order depends only on the
/// number of tiles, so the bits depend on the tile size and not on ranks, workers or schedule. Scalars are double in
/// all precisions. The program submits two iterations ahead of the one whose end it tests; tasks after the end do
/// nothing. Tasks of an iteration, with nt = n / nb: nt (nt + 1) / 2 products, nt (nt - 1) additions of blocks, 6 nt on
/// blocks. Memory: n^2 / nb numbers besides A.
///
/// UsageError: A not square or without the triangle, B or X of another shape, a tolerance that is negative or not a
/// number.
template <Scalar T>
CgOutcome cg(Runtime& rt, Uplo uplo, const TiledData<T>& a, const TiledData<T>& b, TiledData<T>& x,
             const CgOptions& options = {});

/// || B - A X ||_1 / (n (reached ||B||_1 + ||A||_1 ||X||_1 eps)), where `reached` is CgOutcome::residual: whether x is as good as
/// cg reports, up to rounding. Accepted up to `residual_limit`. Submits and waits; `b` is overwritten.
template <Scalar T>
Real<T> cg_residual(Runtime& rt, Uplo uplo, const TiledData<T>& a, const TiledData<T>& x, TiledData<T>& b,
                    double reached);

}  // namespace tandem::linalg
