// tandem/comm/bootstrap/pmix_job_absent.cpp: without PMIx: under mpirun, say what is missing.
#include "tandem/comm/bootstrap/pmix_job.hpp"

namespace tandem::comm::internal {

bool speaks_pmix() noexcept { return false; }

bool started_by_pmix(const Variables& variables) {
  return variables.has("PMIX_RANK") && variables.has("PMIX_NAMESPACE");
}

base::Result<Job> join_pmix(const Variables&, const BootstrapOptions&) {
  return base::Error{
      base::ErrorCode::unsupported,
      "a launcher started this process by PMIx (mpirun, prterun, srun --mpi=pmix), but this build of Tandem has "
      "no PMIx: install libpmix-dev (Debian, Ubuntu) or pmix-devel and configure again, or start with `tandem "
      "run`"};
}

}  // namespace tandem::comm::internal
