// tools/launcher/plan.hpp: which rank runs on which host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::tools {

/// A host as the user names it.
struct HostShare {
  std::string host;
  std::optional<std::uint32_t> ranks;  ///< none: an equal share of the ranks that the others leave
};

/// Parses "a,b:2,[::1]:4". Errors: invalid_argument.
base::Result<std::vector<HostShare>> parse_hosts(std::string_view text);

/// Reads one host per line: "name", "name:2" or "name slots=2"; `#` begins a comment. Errors: not_found, io; malformed,
/// with the line.
base::Result<std::vector<HostShare>> read_hostfile(const std::filesystem::path& file);

/// Consecutive ranks of one host.
struct HostRanks {
  std::string host;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// Deals ranks 0 to `ranks` - 1 to the hosts in their order, consecutive ranks to each: hosts that state a number get
/// it, and the others share the rest as equally as possible. Without `ranks`, each host counts its number, or one if it
/// states none. Hosts without ranks are left out. A host named twice gets both shares, one after the other. Errors
/// (invalid_argument): no rank at all; more ranks than the hosts take.
base::Result<std::vector<HostRanks>> place_ranks(std::optional<std::uint32_t> ranks,
                                                 const std::vector<HostShare>& hosts);

/// Whether the name means this machine, so that no ssh is needed.
bool is_this_host(const std::string& host);

}  // namespace tandem::tools
