// tandem/linalg/kernels/strip_solve.cpp: strip solves in the compiler's vector types, compiled for each instruction
// set.
#include "tandem/linalg/kernels/strip_solve.hpp"

#if defined(__x86_64__)
#define TANDEM_STRIP_TARGETS 1
#endif

namespace tandem::linalg::internal {
namespace {

template <class R, int vector_bytes>
struct Vector {
  typedef R Type __attribute__((vector_size(vector_bytes)));
};

// In both solvers a block of `nj` columns and `nv` vectors of rows stays in registers:
//   acc_j := b_j;  acc_j -= x_k w_kj for the k before the block;  then the block's own triangle.
// Each loaded x_k serves nj multiplications and there are nj * nv independent sums to hide their latency.

template <class R, int vector_bytes, int nv, int nj>
[[gnu::always_inline]] inline void solve_real(const StripSolve<R>& strip) noexcept {
  using V = typename Vector<R, vector_bytes>::Type;
  constexpr std::size_t lanes = vector_bytes / sizeof(R);
  constexpr std::size_t ld = strip_rows<R>;
  static_assert(strip_column_step % nj == 0 && ld % (nv * lanes) == 0);
  const std::size_t n = strip.columns;
  for (std::size_t row = 0; row < ld; row += nv * lanes) {
    R* const x = strip.x[0] + row;
    for (std::size_t j0 = 0; j0 < n; j0 += nj) {
      const R* const w = strip.w[0] + j0 * n;
      V acc[nj][nv];
      for (int j = 0; j < nj; ++j)
        for (int v = 0; v < nv; ++v) acc[j][v] = *reinterpret_cast<const V*>(x + (j0 + j) * ld + v * lanes);
      for (std::size_t k = 0; k < j0; ++k) {
        V xk[nv];
        for (int v = 0; v < nv; ++v) xk[v] = *reinterpret_cast<const V*>(x + k * ld + v * lanes);
        for (int j = 0; j < nj; ++j)
          for (int v = 0; v < nv; ++v) acc[j][v] -= xk[v] * w[k + j * n];
      }
      for (int j = 0; j < nj; ++j) {
        for (int k = 0; k < j; ++k)
          for (int v = 0; v < nv; ++v) acc[j][v] -= acc[k][v] * w[j0 + k + j * n];
        for (int v = 0; v < nv; ++v) {
          acc[j][v] *= w[j0 + j + j * n];
          *reinterpret_cast<V*>(x + (j0 + j) * ld + v * lanes) = acc[j][v];
        }
      }
    }
  }
}

template <class R, int vector_bytes, int nv, int nj>
[[gnu::always_inline]] inline void solve_complex(const StripSolve<R>& strip) noexcept {
  using V = typename Vector<R, vector_bytes>::Type;
  constexpr std::size_t lanes = vector_bytes / sizeof(R);
  constexpr std::size_t ld = strip_rows<R>;
  static_assert(strip_column_step % nj == 0 && ld % (nv * lanes) == 0);
  const std::size_t n = strip.columns;
  for (std::size_t row = 0; row < ld; row += nv * lanes) {
    R* const xr = strip.x[0] + row;
    R* const xi = strip.x[1] + row;
    for (std::size_t j0 = 0; j0 < n; j0 += nj) {
      const R* const wr = strip.w[0] + j0 * n;
      const R* const wi = strip.w[1] + j0 * n;
      V re[nj][nv], im[nj][nv];
      for (int j = 0; j < nj; ++j)
        for (int v = 0; v < nv; ++v) {
          re[j][v] = *reinterpret_cast<const V*>(xr + (j0 + j) * ld + v * lanes);
          im[j][v] = *reinterpret_cast<const V*>(xi + (j0 + j) * ld + v * lanes);
        }
      for (std::size_t k = 0; k < j0; ++k)
        for (int v = 0; v < nv; ++v) {
          const V kr = *reinterpret_cast<const V*>(xr + k * ld + v * lanes);
          const V ki = *reinterpret_cast<const V*>(xi + k * ld + v * lanes);
          for (int j = 0; j < nj; ++j) {
            re[j][v] -= kr * wr[k + j * n];
            re[j][v] += ki * wi[k + j * n];
            im[j][v] -= kr * wi[k + j * n];
            im[j][v] -= ki * wr[k + j * n];
          }
        }
      for (int j = 0; j < nj; ++j)
        for (int v = 0; v < nv; ++v) {
          for (int k = 0; k < j; ++k) {
            const R cr = wr[j0 + k + j * n], ci = wi[j0 + k + j * n];
            re[j][v] = re[j][v] - re[k][v] * cr + im[k][v] * ci;
            im[j][v] = im[j][v] - re[k][v] * ci - im[k][v] * cr;
          }
          const R dr = wr[j0 + j + j * n], di = wi[j0 + j + j * n];
          const V r = re[j][v] * dr - im[j][v] * di;
          const V i = re[j][v] * di + im[j][v] * dr;
          re[j][v] = r;
          im[j][v] = i;
          *reinterpret_cast<V*>(xr + (j0 + j) * ld + v * lanes) = r;
          *reinterpret_cast<V*>(xi + (j0 + j) * ld + v * lanes) = i;
        }
    }
  }
}

#ifdef TANDEM_STRIP_TARGETS
template <class R>
[[gnu::target("avx512f,avx512vl,avx512dq,avx2,fma")]] void real_avx512(const StripSolve<R>& strip) noexcept {
  solve_real<R, 64, 4, 4>(strip);
}
template <class R>
[[gnu::target("avx2,fma")]] void real_avx2(const StripSolve<R>& strip) noexcept {
  solve_real<R, 32, 2, 4>(strip);
}
template <class R>
[[gnu::target("avx512f,avx512vl,avx512dq,avx2,fma")]] void complex_avx512(const StripSolve<R>& strip) noexcept {
  solve_complex<R, 64, 2, 4>(strip);
}
template <class R>
[[gnu::target("avx2,fma")]] void complex_avx2(const StripSolve<R>& strip) noexcept {
  solve_complex<R, 32, 1, 4>(strip);
}
#endif
template <class R>
void real_baseline(const StripSolve<R>& strip) noexcept {
  solve_real<R, 16, 2, 4>(strip);
}
template <class R>
void complex_baseline(const StripSolve<R>& strip) noexcept {
  solve_complex<R, 16, 1, 4>(strip);
}

enum class Isa { baseline, avx2, avx512 };

Isa detect_isa() noexcept {
#ifdef TANDEM_STRIP_TARGETS
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return Isa::avx512;
  if (avx2) return Isa::avx2;
#endif
  return Isa::baseline;
}

Isa isa() noexcept {
  static const Isa found = detect_isa();
  return found;
}

template <class R>
void dispatch_real(const StripSolve<R>& strip) noexcept {
#ifdef TANDEM_STRIP_TARGETS
  if (isa() == Isa::avx512) return real_avx512(strip);
  if (isa() == Isa::avx2) return real_avx2(strip);
#endif
  real_baseline(strip);
}

template <class R>
void dispatch_complex(const StripSolve<R>& strip) noexcept {
#ifdef TANDEM_STRIP_TARGETS
  if (isa() == Isa::avx512) return complex_avx512(strip);
  if (isa() == Isa::avx2) return complex_avx2(strip);
#endif
  complex_baseline(strip);
}

}  // namespace

void strip_solve_real(const StripSolve<float>& strip) noexcept { dispatch_real(strip); }
void strip_solve_real(const StripSolve<double>& strip) noexcept { dispatch_real(strip); }
void strip_solve_complex(const StripSolve<float>& strip) noexcept { dispatch_complex(strip); }
void strip_solve_complex(const StripSolve<double>& strip) noexcept { dispatch_complex(strip); }

const char* strip_solve_isa() noexcept {
  return isa() == Isa::avx512 ? "avx512" : isa() == Isa::avx2 ? "avx2" : "baseline";
}

}  // namespace tandem::linalg::internal
