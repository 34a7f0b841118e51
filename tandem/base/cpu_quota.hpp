// tandem/base/cpu_quota.hpp: the number of processors that a cgroup grants, which no affinity mask shows.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace tandem::base {

/// The quota of this process: a container limited to "1.5 CPUs" still sees all cores, and as many workers would be
/// stopped most of the time. Returns the limit in processors, the least over the cgroup of this process and those above
/// it; empty when there is no limit (or no cgroup version 2 or 1 that shows it). `cgroup_root` and `own_cgroup` (the
/// file /proc/self/cgroup) are passed in for tests.
std::optional<double> cpu_quota(const std::filesystem::path& cgroup_root = "/sys/fs/cgroup",
                                const std::filesystem::path& own_cgroup = "/proc/self/cgroup");

/// The quota that the content of a version 2 cpu.max grants: "150000 100000" is 1.5; "max 100000", or anything else, is
/// none.
std::optional<double> parse_cpu_max(std::string_view content);

}  // namespace tandem::base
