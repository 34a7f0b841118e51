// tandem/linalg/blas_library.hpp: which BLAS a program computes with, and whether its kernels suit the processor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem::linalg {

/// What the BLAS of a program reports about itself.
struct BlasLibrary {
  std::string version;  ///< "OpenBLAS 0.3.21"; empty: the library does not say
  std::string kernels;  ///< processor for which OpenBLAS computes: "SkylakeX", "Prescott"; empty: another library
};

/// The BLAS that this program has loaded. Looked up once. Thread-safe.
const BlasLibrary& blas_library();

/// Instruction sets with vectors, in the order of their width.
enum class Vectors : unsigned char { sse, avx, avx2, avx512 };

/// What this processor and the system can do. `avx2` includes FMA, `avx512` the parts F, BW, DQ and VL. Thread-safe.
Vectors processor_vectors() noexcept;

/// The instruction set of OpenBLAS's kernels for the processor `kernels`. Pure. Unknown names count as `avx512`, so
/// that no user is told to replace the kernels of a newer processor.
Vectors kernel_vectors(std::string_view kernels) noexcept;

/// Values of the environment variable OPENBLAS_CORETYPE that give kernels with wider vectors than `kernels` on a
/// processor that has `vectors`, the widest first. Empty where OpenBLAS has chosen well. Pure.
std::vector<std::string> wider_kernels(std::string_view kernels, Vectors vectors);

/// A warning for people when OpenBLAS computes with kernels of a much older processor, and the variable
/// OPENBLAS_CORETYPE is not set; else empty. It names a remedy, which `tandem doctor` tries. Thread-safe while the
/// environment does not change.
std::string blas_advice();

/// The results of products by this BLAS.
struct BlasTrial {
  double gflops = 0;   ///< of a double-precision gemm of order 512 in the calling thread, the best of a few
  bool right = false;  ///< gemm, trsm and syrk in single and double precision agree with sums by plain loops
};

/// Tries the BLAS of this program. It takes some 50 ms, seconds with kernels of an old processor. Allocates. Call
/// base::restrict_blas_threads() before it.
BlasTrial try_blas();

}  // namespace tandem::linalg
