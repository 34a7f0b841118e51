// tools/machine/picture.hpp: a machine as text and as a picture: packages, NUMA nodes, caches, cores, workers, devices,
// networks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/api/world.hpp"
#include "tandem/base/topology.hpp"

namespace tandem::tools {

/// The drawn parts. The references must outlive it.
struct MachineView {
  struct Device {
    std::string kind;  ///< "OpenCL 0"
    std::string name;
    std::uint64_t memory_bytes = 0;
  };
  const base::Topology& topology;
  const std::vector<WorkerPlacement>& workers;
  std::vector<Device> devices = {};
  std::vector<std::string> networks = {};
};

/// The tree as lines, each with a newline.
std::string machine_tree(const MachineView& machine);
/// The picture as a whole SVG file. Cores with a bound worker are filled.
std::string machine_svg(const MachineView& machine);

}  // namespace tandem::tools
