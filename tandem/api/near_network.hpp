// tandem/api/near_network.hpp: the cores beside the network card.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "tandem/base/topology.hpp"

namespace tandem {

/// The system's number of the NUMA node of the host's network card: an InfiniBand or RoCE card, else the fastest
/// interface that is up. Empty: unknown. `root` is "/", or a test's folder.
std::optional<unsigned> node_of_network(const std::filesystem::path& root = "/");

/// Hardware threads of this topology at the NUMA node of the host's network card. Empty when the topology has only one
/// node, when the card's node is unknown, or when no core is there. A progress thread that is made while the calling
/// thread is bound to them runs there, and the memory that it and the endpoint touch first lies there.
std::vector<unsigned> pus_near_network(const base::Topology& topology, const std::filesystem::path& root = "/");

}  // namespace tandem
