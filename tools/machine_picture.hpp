// tools/machine_picture.hpp: a machine as a tree of text and as a picture: packages, NUMA nodes, caches, cores, workers, devices, networks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/api/world.hpp"
#include "tandem/base/topology.hpp"

namespace tandem::tools {

/// What is drawn. The references must outlive it.
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

/// Lines, each ends with a newline.
std::string machine_tree(const MachineView& machine);
/// A whole file. Cores with a worker bound to them are filled.
std::string machine_svg(const MachineView& machine);

}  // namespace tandem::tools
