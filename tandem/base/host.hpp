// tandem/base/host.hpp: the host on which this process runs.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::base {

/// A running kernel and a network namespace of it. Two processes have equal identities when they can reach each other
/// through loopback addresses and local sockets. A value.
struct HostIdentity {
  std::string boot_id;                    ///< drawn by the kernel when it starts; empty: not known
  std::uint64_t namespace_device = 0;     ///< of /proc/self/ns/net
  std::uint64_t namespace_inode = 0;      ///< 0: not known

  bool known() const noexcept { return !boot_id.empty() && namespace_inode != 0; }
  /// The identity as "BOOT_ID/INODE"; "unknown" and 0 stand for unknown parts.
  std::string text() const;
  bool operator==(const HostIdentity&) const = default;
};

/// Reads /proc at each call. Any thread.
HostIdentity host_identity();

/// The host's name as people know it, from gethostname(); "?" when the system has none. For messages and files. Any
/// thread.
std::string host_name();

}  // namespace tandem::base
