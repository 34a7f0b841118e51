// tandem/linalg/kernels/strip_solve.hpp: the innermost triangular solve, on a strip of rows that fits the vector
// registers.
#pragma once

#include <cstddef>

#include "tandem/linalg/types.hpp"

namespace tandem::linalg::internal {

/// Rows of a strip: 256 bytes of each column, which is 4 vectors of AVX-512, 8 of AVX2.
template <class R>
inline constexpr std::size_t strip_rows = 256 / sizeof(R);

/// Columns of a strip are padded to a multiple of this, with a unit diagonal in `w`.
inline constexpr std::size_t strip_column_step = 4;

/// The largest triangle that a strip is solved with: w and the strip, 8 KiB each in double, stay in the first-level
/// cache.
inline constexpr std::size_t strip_columns_max = 32;

/// The operands of one strip solve X W = B in planes of real numbers: plane 0 holds real parts, plane 1 imaginary
/// parts.
template <class R>
struct StripSolve {
  std::size_t columns = 0;  ///< order of W, a multiple of strip_column_step, at most strip_columns_max
  const R* w[2] = {};       ///< W, upper triangular, column-major with ld = columns; its diagonal holds reciprocals
  R* x[2] = {};             ///< B on entry, X on return: strip_rows by columns, column-major, 64-byte aligned
};

/// Solves X W = B on one strip: x_j := (b_j - sum_{k<j} x_k w_kj) * (1 / w_jj).
/// The rows are independent, so the vectors run along them and no operation depends on the next one. Real numbers.
void strip_solve_real(const StripSolve<float>& strip) noexcept;
void strip_solve_real(const StripSolve<double>& strip) noexcept;

/// Like `strip_solve_real`, for complex numbers in two planes.
void strip_solve_complex(const StripSolve<float>& strip) noexcept;
void strip_solve_complex(const StripSolve<double>& strip) noexcept;

/// The instruction set that strip solves use on this machine: "avx512", "avx2" or "baseline".
const char* strip_solve_isa() noexcept;

}  // namespace tandem::linalg::internal
