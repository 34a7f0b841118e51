// tandem/comm/transport/rdma.hpp: the InfiniBand and RoCE ports of this host.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tandem::comm::internal {

/// The ports that are connected ("mlx5_0:1"), in the order of their names. Reads /sys/class/infiniband below `root`, a
/// test's folder or "/".
std::vector<std::string> active_rdma_ports(const std::filesystem::path& root = "/");

/// The transports of a host with these ports, in order of preference: memory, then the faster network.
std::vector<std::string> automatic_transports(const std::vector<std::string>& rdma_ports);

}  // namespace tandem::comm::internal
