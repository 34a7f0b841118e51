// tools/launcher/ssh_alias.hpp: the address of a host whose name ssh or Slurm knows.
#pragma once

#include <string>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::tools {

/// The name or address at which ssh reaches `host`: the HostName of its configuration file, or `host` itself. `ssh` is
/// the program with its options; when it is srun, the address that Slurm has for the node. Errors: unsupported when the
/// program is neither, and what `run_program` says.
base::Result<std::string> host_name_of(const std::vector<std::string>& ssh, const std::string& host);

}  // namespace tandem::tools
