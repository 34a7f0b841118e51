// tandem/api/rank_cores.hpp: which cores of its host a rank uses, from what all ranks of the host tell each other.
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

/// Finds the cores of this rank, and stores them: `topology` (these cores and no others), `has_own_cores`, and `home`, which keeps
/// this thread and those that it makes on them while it lives. In this order:
///
/// 1. option `cores`: the list for this rank;
/// 2. one rank on this host: the affinity mask of the process;
/// 3. several: they exchange their masks by the job's directory, and each computes the same plan (`base::plan_rank_cores`).
///
/// A rank that does not tell its mask in time leaves the others without a plan: each divides the number of its cores by the number
/// of ranks, unbound. `job` is null for a rank that is alone. Throws StartError.
void find_cores(const base::Config& config, const comm::Job* job, WorldResources& resources);

/// The lists of option `cores`: "0-7,16-23" for every rank, or one for each rank of the host, separated by semicolons.
/// `place` is this rank's among the `count` of the host. Errors: invalid_argument.
base::Result<std::vector<unsigned>> cores_of_option(std::string_view text, std::size_t place, std::size_t count);

}  // namespace tandem
