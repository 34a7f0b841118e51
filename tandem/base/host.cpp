// tandem/base/host.cpp: reads the identity of the host from /proc.
#include "tandem/base/host.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include <fmt/core.h>

namespace tandem::base {

std::string HostIdentity::text() const {
  return fmt::format("{}/{}", boot_id.empty() ? "unknown" : boot_id, namespace_inode);
}

HostIdentity host_identity() {
  HostIdentity identity;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> identity.boot_id;
  struct stat network {};
  if (::stat("/proc/self/ns/net", &network) == 0) {
    identity.namespace_device = network.st_dev;
    identity.namespace_inode = network.st_ino;
  }
  return identity;
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "?";
}

}  // namespace tandem::base
