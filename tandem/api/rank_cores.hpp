// tandem/api/rank_cores.hpp: finds the cores of its host that a rank uses, by an exchange among the ranks of the host.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/config.hpp"
#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/comm/bootstrap/job.hpp"

namespace tandem {

struct WorldResources;

/// Finds the cores of this rank, and stores them: `topology` (these cores only), `has_own_cores`, and `home`, which
/// binds this thread and those that it makes to them while it lives. In this order:
///
/// 1. option `cores`: the list for this rank;
/// 2. one rank on this host: the affinity mask of the process;
/// 3. several: they exchange their masks by the job's directory, and each computes the same plan
///    (`base::plan_rank_cores`).
///
/// If a rank does not tell its mask in time, the others have no plan: each divides the number of its cores by the
/// number of ranks, unbound. `job` is null for a single rank. Option `caller.numa` then binds this thread to the cores
/// of one NUMA node. Throws StartError.
void find_cores(const base::Config& config, const comm::Job* job, WorldResources& resources);

/// Parses option `cores`: "0-7,16-23" for every rank, or one list for each rank of the host, separated by semicolons.
/// `place` is this rank's among the `count` of the host. Errors: invalid_argument.
base::Result<std::vector<unsigned>> cores_of_option(std::string_view text, std::size_t place, std::size_t count);

}  // namespace tandem
