// tools/launcher/batch_hosts.hpp: the hosts that a batch system has given to the job in which this process runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/config.hpp"
#include "tandem/base/result.hpp"
#include "tools/launcher/plan.hpp"

namespace tandem::tools {

struct BatchHosts {
  std::string system;               ///< "Slurm", "PBS", "OAR" or "LSF"
  std::vector<HostShare> hosts;     ///< each once; with a number of ranks where the job asked for tasks
  std::vector<std::string> remote;  ///< starts a command on a host, whose name and command line follow; empty: ssh does
};

/// Reads the environment of a Slurm job (SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE), a PBS job (PBS_NODEFILE, a line for
/// each process), an OAR job (OAR_NODEFILE, a line for each core: the number of ranks stays open), or an LSF job
/// (LSB_MCPU_HOSTS or LSB_DJOB_HOSTFILE). Empty: this is no such job. Errors: malformed, not_found, io, with the
/// variable.
base::Result<std::optional<BatchHosts>> batch_hosts(const base::Environment& environment);

/// Expands "n[1-3,7],login,rack[0-1]-n[01-02]" to names, in order. Errors: malformed; more than 1,000,000 names.
base::Result<std::vector<std::string>> expand_nodelist(std::string_view text);

/// Expands "2(x3),1" to 2 2 2 1. Errors: malformed.
base::Result<std::vector<std::uint32_t>> expand_tasks_per_node(std::string_view text);

/// The hosts of the job's ranks: the job's own numbers when `ranks` is empty or their sum; else all hosts share `ranks`
/// alike.
std::vector<HostShare> shares_for(std::optional<std::uint32_t> ranks, const BatchHosts& job);

}  // namespace tandem::tools
