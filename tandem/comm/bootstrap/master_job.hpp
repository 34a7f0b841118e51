// tandem/comm/bootstrap/master_job.hpp: joining by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as other launchers
// set them.
#pragma once

#include <memory>
#include <string>

#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/bootstrap/join.hpp"
#include "tandem/comm/bootstrap/rendezvous_client.hpp"
#include "tandem/comm/bootstrap/variables.hpp"

namespace tandem::comm::internal {

/// Whether at least two of the four are set: one alone may belong to another program.
bool started_by_master(const Variables& variables);

/// Rank 0 serves the rendezvous on a thread of its own, as long as its directory lives. Then it sends all addresses to
/// the ranks that stay longer. Errors: as join_job.
base::Result<Job> join_master(const Variables& variables, const BootstrapOptions& options);

/// Describes the job of which `client` has become a member.
Job job_of(std::unique_ptr<RendezvousClient> client, const JobSecret& secret, Rank rank, std::uint32_t size,
           std::string source);

}  // namespace tandem::comm::internal
