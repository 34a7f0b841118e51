// tandem/comm/transport/tcp/address.cpp: socket addresses, this host's interfaces, and their text for peers.
#include "tandem/comm/transport/tcp/address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/core.h>

#include "tandem/base/assert.hpp"

namespace tandem::comm::internal {

namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

unsigned prefix_length(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  unsigned bits = 0;
  if (mask->sa_family == AF_INET) {
    bits = static_cast<unsigned>(std::popcount(reinterpret_cast<const sockaddr_in*>(mask)->sin_addr.s_addr));
  } else if (mask->sa_family == AF_INET6) {
    for (const std::uint8_t byte : reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr.s6_addr) {
      bits += static_cast<unsigned>(std::popcount(byte));
    }
  }
  return bits;
}

bool is_link_local(const SocketAddress& address) {
  if (address.family() == AF_INET6) {
    return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
  }
  return address.host().starts_with("169.254.");
}

// Bridges of containers and virtual machines have the same address on every host and do not reach other hosts.
bool is_virtual_bridge(std::string_view interface) {
  return interface.starts_with("docker") || interface.starts_with("virbr") || interface.starts_with("lxcbr");
}

std::string list_of(const std::vector<LocalAddress>& all) {
  std::string text;
  for (const LocalAddress& local : all) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", local.interface, local.address.host());
  }
  return text;
}

std::vector<LocalAddress> automatic(const std::vector<LocalAddress>& all) {
  std::vector<LocalAddress> chosen;
  const auto take = [&](auto&& wanted) {
    for (const LocalAddress& local : all) {
      if (wanted(local) && !is_link_local(local.address) && chosen.size() < TcpCard::most_addresses)
        chosen.push_back(local);
    }
  };
  for (const int family : {AF_INET, AF_INET6}) {
    for (const bool bridges : {false, true}) {
      take([&](const LocalAddress& local) {
        return local.address.family() == family && !local.address.is_loopback() &&
               is_virtual_bridge(local.interface) == bridges;
      });
    }
  }
  if (chosen.empty()) take([](const LocalAddress& local) { return local.address.is_loopback(); });
  return chosen;
}

}  // namespace

SocketAddress SocketAddress::of(const sockaddr* from) {
  TANDEM_ASSERT(from->sa_family == AF_INET || from->sa_family == AF_INET6);
  SocketAddress result;
  if (from->sa_family == AF_INET) std::memcpy(&result.storage_.v4, from, sizeof(sockaddr_in));
  if (from->sa_family == AF_INET6) std::memcpy(&result.storage_.v6, from, sizeof(sockaddr_in6));
  return result;
}

std::optional<SocketAddress> SocketAddress::parse(std::string_view text, std::uint16_t port) {
  const std::string copy(text);
  SocketAddress result;
  if (inet_pton(AF_INET, copy.c_str(), &result.storage_.v4.sin_addr) == 1) {
    result.storage_.v4.sin_family = AF_INET;
  } else if (inet_pton(AF_INET6, copy.c_str(), &result.storage_.v6.sin6_addr) == 1) {
    result.storage_.v6.sin6_family = AF_INET6;
  } else {
    return std::nullopt;
  }
  result.set_port(port);
  return result;
}

SocketAddress SocketAddress::any(int family, std::uint16_t port) {
  return *parse(family == AF_INET6 ? "::" : "0.0.0.0", port);
}

std::uint16_t SocketAddress::port() const noexcept {
  return ntohs(family() == AF_INET6 ? storage_.v6.sin6_port : storage_.v4.sin_port);
}

void SocketAddress::set_port(std::uint16_t port) noexcept {
  (family() == AF_INET6 ? storage_.v6.sin6_port : storage_.v4.sin_port) = htons(port);
}

bool SocketAddress::is_loopback() const noexcept {
  if (family() == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&storage_.v6.sin6_addr);
  return bytes()[0] == 127;
}

SocketAddress SocketAddress::unmapped() const {
  if (family() != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&storage_.v6.sin6_addr)) return *this;
  SocketAddress result;
  result.storage_.v4.sin_family = AF_INET;
  result.storage_.v4.sin_port = storage_.v6.sin6_port;
  std::memcpy(&result.storage_.v4.sin_addr, storage_.v6.sin6_addr.s6_addr + 12, 4);
  return result;
}

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(family(), bytes().data(), text, sizeof text);
  return text;
}

std::string SocketAddress::text() const {
  return fmt::format(fmt::runtime(family() == AF_INET6 ? "[{}]:{}" : "{}:{}"), host(), port());
}

bool SocketAddress::shares_prefix(const SocketAddress& other, unsigned bits) const noexcept {
  if (family() != other.family()) return false;
  const auto left = bytes();
  const auto right = other.bytes();
  for (std::size_t i = 0; i < left.size() && bits > 0; ++i) {
    const unsigned here = std::min(bits, 8U);
    if (((left[i] ^ right[i]) >> (8 - here)) != 0) return false;
    bits -= here;
  }
  return true;
}

std::span<const std::uint8_t> SocketAddress::bytes() const noexcept {
  if (family() == AF_INET6) return storage_.v6.sin6_addr.s6_addr;
  return std::span(reinterpret_cast<const std::uint8_t*>(&storage_.v4.sin_addr), sizeof(in_addr));
}

base::Result<std::vector<LocalAddress>> local_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return base::Error{base::ErrorCode::io,
                       fmt::format("cannot list this host's network interfaces: {}", std::strerror(errno))};
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::vector<LocalAddress> result;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    if (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6) continue;
    result.push_back({entry->ifa_name, SocketAddress::of(entry->ifa_addr), prefix_length(entry->ifa_netmask)});
  }
  return result;
}

base::Result<std::vector<LocalAddress>> select_addresses(const std::vector<LocalAddress>& all,
                                                         std::string_view wanted) {
  if (wanted.empty()) {
    std::vector<LocalAddress> chosen = automatic(all);
    if (!chosen.empty()) return chosen;
    return base::Error{base::ErrorCode::invalid_argument,
                       "no network interface is up on this host, not even the loopback one"};
  }
  std::vector<LocalAddress> chosen;
  for (const std::string_view name : split(wanted, ',')) {
    const auto address = SocketAddress::parse(name, 0);
    const auto named = [&](const LocalAddress& local) {
      return address ? local.address.host() == address->host()
                     : local.interface == name && !is_link_local(local.address);
    };
    const auto found = std::find_if(all.begin(), all.end(), named);
    if (found == all.end()) {
      return base::Error{base::ErrorCode::invalid_argument,
                         fmt::format("no network interface that is up has the name or address `{}`; there are {}", name,
                                     list_of(all))};
    }
    chosen.push_back(*found);
  }
  if (chosen.empty() || chosen.size() > TcpCard::most_addresses) {
    return base::Error{base::ErrorCode::invalid_argument,
                       fmt::format("`{}` names {} network interfaces; 1 to {} can be used", wanted, chosen.size(),
                                   TcpCard::most_addresses)};
  }
  return chosen;
}

std::string TcpCard::text() const {
  std::string result = fmt::format("tcp1 port={} host={} at=", port, host);
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (i > 0) result += ',';
    result += addresses[i].host();
  }
  return result;
}

std::optional<TcpCard> TcpCard::parse(std::string_view text) {
  const auto fields = split(text, ' ');
  if (fields.size() != 4 || fields[0] != "tcp1") return std::nullopt;
  if (!fields[1].starts_with("port=") || !fields[2].starts_with("host=") || !fields[3].starts_with("at="))
    return std::nullopt;
  TcpCard card;
  const std::string_view port = fields[1].substr(5);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), card.port);
  if (error != std::errc() || end != port.data() + port.size() || card.port == 0) return std::nullopt;
  card.host = fields[2].substr(5);
  for (const std::string_view name : split(fields[3].substr(3), ',')) {
    const auto address = SocketAddress::parse(name, card.port);
    if (!address || card.addresses.size() == most_addresses) return std::nullopt;
    card.addresses.push_back(*address);
  }
  if (card.addresses.empty()) return std::nullopt;
  return card;
}

std::vector<SocketAddress> candidates(const TcpCard& card, const std::vector<LocalAddress>& own,
                                      std::string_view own_host, unsigned rail) {
  std::vector<SocketAddress> result;
  const bool one_host = card.host == own_host;
  const auto take = [&](auto&& wanted) {
    for (std::size_t i = 0; i < card.addresses.size(); ++i) {
      const SocketAddress& address = card.addresses[(rail + i) % card.addresses.size()];
      if (address.is_loopback() && !one_host) continue;
      const auto same = [&](const SocketAddress& other) { return other.text() == address.text(); };
      if (wanted(address) && std::none_of(result.begin(), result.end(), same)) result.push_back(address);
    }
  };
  const auto in_subnet = [](const LocalAddress& local, const SocketAddress& address) {
    return local.prefix_bits > 0 && local.address.shares_prefix(address, local.prefix_bits);
  };
  if (!own.empty()) take([&](const SocketAddress& address) { return in_subnet(own[rail % own.size()], address); });
  take([&](const SocketAddress& address) {
    return std::any_of(own.begin(), own.end(), [&](const LocalAddress& local) { return in_subnet(local, address); });
  });
  take([](const SocketAddress&) { return true; });
  return result;
}

}  // namespace tandem::comm::internal
