// tandem/comm/bootstrap/join.hpp: how a program finds out which rank of which job it is.
#pragma once

#include <cstdint>

#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/job.hpp"

namespace tandem::comm {

/// What `join_job` works with.
struct BootstrapOptions {
  base::Environment environment;  ///< `base::process_environment()`, or a test's own
  base::Log& log;                 ///< outlives the job's directory
  /// How long joining, and each look-up of a peer, may wait for others to start. 0: 60 s; but look-ups under `tandem
  /// run` wait without limit, since it says which ranks have ended. Option `comm.start_timeout`.
  std::int64_t timeout_ns = 0;

  /// How long joining may wait.
  std::int64_t join_timeout_ns() const noexcept { return timeout_ns > 0 ? timeout_ns : 60'000'000'000; }
};

/// Looks at the environment for, in this order:
///
/// 1. `tandem run`: TANDEM_JOB_RANK, TANDEM_JOB_SIZE, TANDEM_JOB_SERVER, and the secret that it passes.
/// 2. PMIx (mpirun, prterun, srun --mpi=pmix): PMIX_RANK, PMIX_NAMESPACE.
/// 3. RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT: rank 0 serves the rendezvous at MASTER_PORT. The secret is
///    TANDEM_JOB_SECRET, or the content of the file TANDEM_JOB_SECRET_FILE, or else of ~/.tandem/secret, which is made
///    when it is missing.
/// 4. several tasks of a launcher that sets none of these: an error that explains it, instead of many jobs of one rank.
/// 5. nothing: this process is alone, a job of one rank.
///
/// `Job::source` says which. The job's directory keeps the connection to the others: it must live until the rank leaves
/// the job. Errors: not_found or invalid_argument (a variable is missing or malformed, named), unsupported (a launcher
/// that this build does not support; another version), exhausted (the others do not come in time), io.
base::Result<Job> join_job(const BootstrapOptions& options);

}  // namespace tandem::comm
