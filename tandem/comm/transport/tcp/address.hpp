// tandem/comm/transport/tcp/address.hpp: socket addresses, this host's interfaces, and their text for peers.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/base/result.hpp"

namespace tandem::comm::internal {

/// An IPv4 or IPv6 address with a port. A value.
class SocketAddress {
 public:
  SocketAddress() = default;
  /// Converts an address, whose family is AF_INET or AF_INET6.
  static SocketAddress of(const sockaddr* from);
  /// Parses a numeric address, without a look-up of names: "10.0.0.1", "fd00::1".
  static std::optional<SocketAddress> parse(std::string_view text, std::uint16_t port);
  /// The wildcard address: all addresses of this host.
  static SocketAddress any(int family, std::uint16_t port);

  int family() const noexcept { return storage_.generic.sa_family; }
  std::uint16_t port() const noexcept;
  void set_port(std::uint16_t port) noexcept;
  bool is_loopback() const noexcept;
  /// The IPv4 address if IPv6 only wraps one, as a listener for both families sees it; else this address.
  SocketAddress unmapped() const;
  /// The address without its port: "10.0.0.1".
  std::string host() const;
  /// The address with its port: "10.0.0.1:4000", "[fd00::1]:4000".
  std::string text() const;
  /// Whether both start with the same `bits` bits.
  bool shares_prefix(const SocketAddress& other, unsigned bits) const noexcept;

  const sockaddr* get() const noexcept { return &storage_.generic; }
  socklen_t size() const noexcept { return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

 private:
  std::span<const std::uint8_t> bytes() const noexcept;

  union {
    sockaddr generic;
    sockaddr_in v4;
    sockaddr_in6 v6;
  } storage_{};
};

/// An address of this host, with the length of its subnet's prefix.
struct LocalAddress {
  std::string interface;
  SocketAddress address;
  unsigned prefix_bits = 0;
};

/// Every address of every interface that is up. Errors: io.
base::Result<std::vector<LocalAddress>> local_addresses();

/// The addresses of `all` that `wanted` names (see `TcpOptions::interfaces`), in its order; by default all that other
/// hosts may know. Errors: invalid_argument, with the list of existing ones.
base::Result<std::vector<LocalAddress>> select_addresses(const std::vector<LocalAddress>& all, std::string_view wanted);

/// What a peer must know to connect. As text: "tcp1 port=4000 host=<boot id>/<network namespace> at=10.0.0.1,fd00::1".
struct TcpCard {
  std::uint16_t port = 0;
  std::string host;                      ///< text of base::HostIdentity
  std::vector<SocketAddress> addresses;  ///< with the port

  std::string text() const;
  static std::optional<TcpCard> parse(std::string_view text);
  static constexpr std::size_t most_addresses = 8;
};

/// The addresses of `card` in the order in which to try them for `rail`: those in the subnet of that rail's own address
/// first, then those in any subnet of ours, then the others, each starting at the rail's turn; loopback addresses only
/// on one host.
std::vector<SocketAddress> candidates(const TcpCard& card, const std::vector<LocalAddress>& own,
                                      std::string_view own_host, unsigned rail);

}  // namespace tandem::comm::internal
