// tandem/comm/bootstrap/host_address.hpp: addresses of hosts, from names and of sockets.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/socket.hpp"

namespace tandem::comm::internal {

/// An address of IPv4 or IPv6 with its port, as system calls take it. A value.
struct HostAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  /// The wildcard address: all addresses of this machine.
  static HostAddress any(int family, std::uint16_t port);

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const noexcept { return storage.ss_family; }
  std::uint16_t port() const noexcept;
  bool is_any() const noexcept;
  bool is_loopback() const noexcept;
  /// Whether the address is link-local (fe80::), and so means another host on each link.
  bool is_of_one_link() const noexcept;
  /// The IPv4 address that an IPv6 socket writes as ::ffff:10.0.0.1; any other address unchanged.
  HostAddress unmapped() const noexcept;
  /// The address as text: "10.0.0.1" and "10.0.0.1:4711", "fd00::1" and "[fd00::1]:4711".
  std::string host() const;
  std::string text() const;

  bool operator==(const HostAddress& other) const noexcept {
    return bytes == other.bytes && std::memcmp(&storage, &other.storage, bytes) == 0;
  }
};

/// The addresses of a name in the resolver's order. Blocks as long as the resolver does. Errors: not_found.
base::Result<std::vector<HostAddress>> resolve(const HostPort& where);
/// The address when `where.host` is a numeric one; never asks the resolver. Errors: not_found.
base::Result<HostAddress> numeric_address(const HostPort& where);

/// The addresses with the two families in turns, the first one's family first: when one protocol does not work, the
/// next attempt uses the other.
std::vector<HostAddress> in_turns(const std::vector<HostAddress>& addresses);

/// The own address of a socket. Errors: io.
base::Result<HostAddress> own_address(int socket);

/// Whether this machine has no address but those of the loopback interface: then names of other hosts stay unknown.
bool has_no_network();

}  // namespace tandem::comm::internal
