// tandem/comm/transport/rdma.cpp: the state of each port from the kernel.
#include "tandem/comm/transport/rdma.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/core.h>

namespace tandem::comm::internal {

namespace fs = std::filesystem;

std::vector<std::string> active_rdma_ports(const fs::path& root) {
  std::vector<std::string> active;
  std::error_code failed;
  for (fs::directory_iterator card(root / "sys/class/infiniband", failed), end; !failed && card != end;
       card.increment(failed)) {
    std::error_code no_ports;
    for (fs::directory_iterator port(card->path() / "ports", no_ports); !no_ports && port != end;
         port.increment(no_ports)) {
      std::ifstream stream(port->path() / "state");
      std::string state;  // "4: ACTIVE"
      if (std::getline(stream, state) && state.find("ACTIVE") != std::string::npos)
        active.push_back(fmt::format("{}:{}", card->path().filename().string(), port->path().filename().string()));
    }
  }
  std::sort(active.begin(), active.end());
  return active;
}

std::vector<std::string> automatic_transports(const std::vector<std::string>& rdma_ports) {
  if (rdma_ports.empty()) return {"shm", "tcp"};
  return {"shm", "ucx", "tcp"};
}

}  // namespace tandem::comm::internal
