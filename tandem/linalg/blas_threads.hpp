// tandem/linalg/blas_threads.hpp: whether the BLAS uses threads of its own after all.
#pragma once

namespace tandem::linalg {

/// How many threads of this process worked during a gemm of about 20 ms: 1 when the BLAS behaves, more when it starts or wakes
/// its own all the same (after `base::restrict_blas_threads`), so that the caller can warn. Call it while no worker is busy.
/// Reads the times on cores in /proc/self/task; 1 where there are none. Allocates; takes about 20 ms, and up to half a second
/// before it answers more than 1.
int observed_blas_threads();

}  // namespace tandem::linalg
