// tools/ssh_alias.hpp: what ssh's own configuration calls a host.
#pragma once

#include <string>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::tools {

/// The name or address at which ssh reaches `host`: the HostName of its configuration file, or `host` itself. `ssh` is the program with
/// its options. Errors: unsupported when the program is not ssh, and what `run_program` says.
base::Result<std::string> host_name_of(const std::vector<std::string>& ssh, const std::string& host);

}  // namespace tandem::tools
