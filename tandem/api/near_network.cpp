// tandem/api/near_network.cpp: reads the kernel's information on each network card.
#include "tandem/api/near_network.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include "tandem/api/number_in_file.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

/// The node of the fastest network card in a class of devices; ties go to the first name.
std::optional<unsigned> node_of_class(const fs::path& folder, bool needs_link) {
  std::optional<unsigned> node;
  long fastest = -2;
  std::string first;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const auto its_node = internal::number_in_file(at->path() / "device/numa_node");
    std::string state;
    std::ifstream(at->path() / "operstate") >> state;
    if (!its_node || *its_node < 0 || (needs_link && state != "up")) continue;
    const long speed = internal::number_in_file(at->path() / "speed").value_or(-1);
    const std::string name = at->path().filename();
    if (speed < fastest || (speed == fastest && name > first)) continue;
    fastest = speed;
    first = name;
    node = static_cast<unsigned>(*its_node);
  }
  return node;
}

}  // namespace

std::optional<unsigned> node_of_network(const fs::path& root) {
  const auto node = node_of_class(root / "sys/class/infiniband", false);
  return node ? node : node_of_class(root / "sys/class/net", true);
}

std::vector<unsigned> pus_near_network(const base::Topology& topology, const fs::path& root) {
  if (topology.numa_nodes().size() < 2) return {};
  const auto node = node_of_network(root);
  std::vector<unsigned> pus;
  for (const base::Core& core : topology.cores())
    if (node && core.numa_node == *node) pus.insert(pus.end(), core.pus.begin(), core.pus.end());
  return pus;
}

}  // namespace tandem
