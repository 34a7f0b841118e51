// tandem/linalg/blas_threads.hpp: keeps the BLAS from starting threads of its own under our workers.
#pragma once

namespace tandem::linalg {

/// A BLAS with its own threads would run workers * threads of them on the cores. Which library stands behind the BLAS's names is
/// known only when the program runs (Debian's alternatives, LD_PRELOAD), so its switch is looked up by name. Stateless.
class BlasThreads {
 public:
  /// Tells the library to use one thread per call. The first call acts, later ones cost a load; any thread. Returns the name of the
  /// switch that was found (`openblas_set_num_threads`, ...), or nullptr when the library has none that we know, which is
  /// right for a reference BLAS. `omp_set_num_threads` is used only when nothing better exists, since it also
  /// governs the user's own OpenMP regions, and only on the calling thread.
  static const char* restrict_to_one() noexcept;

  /// How many threads of this process worked during a gemm of about 20 ms: 1 when the BLAS behaves, more when it starts or wakes its
  /// own all the same, so that the caller can warn. Call it while no worker is busy. Reads the times on cores in /proc/self/task;
  /// 1 where there are none. Allocates; takes about 20 ms, and up to half a second before it
  /// answers more than 1.
  static int observed_threads();
};

}  // namespace tandem::linalg
