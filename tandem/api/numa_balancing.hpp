// tandem/api/numa_balancing.hpp: a warning of the kernel's NUMA balancing (factor G of the affinity paper).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "tandem/api/number_in_file.hpp"

namespace tandem::internal {

/// Warning for the user of a machine with so many NUMA nodes; empty: none. `root` is "/", or a test's folder.
inline std::string warning_of_numa_balancing(std::size_t numa_nodes, const std::filesystem::path& root = "/") {
  if (numa_nodes < 2 || number_in_file(root / "proc/sys/kernel/numa_balancing").value_or(0) == 0) return {};
  return "kernel.numa_balancing is on: the system moves pages between NUMA nodes while tasks use them, and tasks "
         "become slower at random. "
         "As root: sysctl kernel.numa_balancing=0";
}

}  // namespace tandem::internal
