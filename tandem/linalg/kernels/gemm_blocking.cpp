// tandem/linalg/kernels/gemm_blocking.cpp: recognises the library and its kernels by their descriptions.
#include "tandem/linalg/kernels/gemm_blocking.hpp"

#include <cstdio>
#include <string_view>

#include "tandem/linalg/blas_library.hpp"
#include "tandem/linalg/kernels/blas.hpp"

namespace tandem::linalg::internal {
namespace {

/// Whether this is an OpenBLAS of 0.3.18 or later, the first with the small kernels on by default in builds for many
/// cores.
bool has_small_kernels(std::string_view core, const char* config) noexcept {
  int major = 0, minor = 0, patch = 0;
  if (std::sscanf(config, "OpenBLAS %d.%d.%d", &major, &minor, &patch) != 3) return false;
  const bool recent = major > 0 || minor > 3 || (minor == 3 && patch >= 18);
  return recent && (core == "SkylakeX" || core == "Cooperlake" || core == "SapphireRapids");
}

}  // namespace

template <Scalar T>
GemmBlocking choose_gemm_blocking(const char* core, const char* config, Op op_a, Op op_b) noexcept {
  if (is_complex<T> || !has_small_kernels(core, config)) return {};
  // A's columns are contiguous: 32 x 48 sums of at most 320 terms are the fastest of the shapes below 10^6,
  // and few enough lines of C that they can be on their way at once (see gemm.cpp).
  if (op_a == Op::no_trans) return {32, 48, 320};
  // A^T B takes dot products; long ones in small blocks. A^T B^T gains nothing.
  if (op_b == Op::no_trans) return {24, 48, 512};
  return {};
}

template <Scalar T>
GemmBlocking gemm_blocking(Op op_a, Op op_b) noexcept {
  struct Choices {
    GemmBlocking of[2][2];
  };
  static const Choices choices = [] {
    const BlasLibrary& library = blas_library();
    const char* const core = library.kernels.c_str();
    const char* const config = library.version.c_str();
    Choices all;
    for (bool a : {false, true})
      for (bool b : {false, true})
        all.of[a][b] =
            choose_gemm_blocking<T>(core, config, a ? Op::trans : Op::no_trans, b ? Op::trans : Op::no_trans);
    return all;
  }();
  return choices.of[op_a != Op::no_trans][op_b != Op::no_trans];
}

#define INSTANTIATE(T)                                                                             \
  template GemmBlocking choose_gemm_blocking<T>(const char*, const char*, Op, Op) noexcept;        \
  template GemmBlocking gemm_blocking<T>(Op, Op) noexcept;
TANDEM_LINALG_FOR_EACH_SCALAR(INSTANTIATE)
#undef INSTANTIATE

}  // namespace tandem::linalg::internal
