// tandem/comm/bootstrap/pmix_job.hpp: joining by PMIx, as mpirun, prterun and srun --mpi=pmix offer it.
#pragma once

#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/bootstrap/join.hpp"
#include "tandem/comm/bootstrap/variables.hpp"

namespace tandem::comm::internal {

/// Whether this build has PMIx.
bool speaks_pmix() noexcept;

/// Whether a PMIx server serves this process.
bool started_by_pmix(const Variables& variables);

/// Addresses are put and committed once, and fetched when they are asked for: no collective operation. Rank 0 draws the
/// job's secret, and PMIx passes it to the others through the launcher's own channel. A process that can read this
/// channel could also replace the ranks. In a build without PMIx (pmix_job_absent.cpp): an error that says which
/// package is missing. Errors: as join_job.
base::Result<Job> join_pmix(const Variables& variables, const BootstrapOptions& options);

}  // namespace tandem::comm::internal
