// tandem/linalg/blas_threads.hpp: checks whether the BLAS uses threads of its own.
#pragma once

namespace tandem::linalg {

/// Number of threads of this process that worked during a gemm of about 20 ms: 1 when the BLAS keeps to one thread,
/// more when it uses threads of its own despite `base::restrict_blas_threads`; then the caller can warn. Call it while
/// no worker is busy. Reads times from /proc/self/task; 1 where there are none. Allocates. Takes about 20 ms, and up to
/// half a second when the result is more than 1.
int observed_blas_threads();

}  // namespace tandem::linalg
