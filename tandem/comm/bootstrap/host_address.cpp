// tandem/comm/bootstrap/host_address.cpp: getaddrinfo and getnameinfo, and what distinguishes addresses.
#include "tandem/comm/bootstrap/host_address.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include <fmt/core.h>

#include "tandem/base/file_descriptor.hpp"

namespace tandem::comm::internal {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

const sockaddr_in& v4(const HostAddress& address) { return reinterpret_cast<const sockaddr_in&>(address.storage); }
const sockaddr_in6& v6(const HostAddress& address) { return reinterpret_cast<const sockaddr_in6&>(address.storage); }

Result<std::vector<HostAddress>> ask_resolver(const HostPort& where, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;  // lists each address once
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* list = nullptr;
  const int code = getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &list);
  if (code != 0) {
    const std::string reason = code == EAI_SYSTEM ? base::system_error_text(errno) : gai_strerror(code);
    return Error{ErrorCode::not_found, fmt::format("the host {} has no known address: {}", where.host, reason)};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  std::vector<HostAddress> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    HostAddress& address = addresses.emplace_back();
    address.bytes = std::min<socklen_t>(entry->ai_addrlen, sizeof address.storage);
    std::memcpy(&address.storage, entry->ai_addr, address.bytes);
  }
  return addresses;
}

}  // namespace

HostAddress HostAddress::any(int family, std::uint16_t port) {
  HostAddress address;
  address.storage.ss_family = static_cast<sa_family_t>(family);
  address.bytes = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (family == AF_INET) reinterpret_cast<sockaddr_in&>(address.storage).sin_port = htons(port);
  else reinterpret_cast<sockaddr_in6&>(address.storage).sin6_port = htons(port);
  return address;
}

std::uint16_t HostAddress::port() const noexcept {
  return ntohs(family() == AF_INET ? v4(*this).sin_port : v6(*this).sin6_port);
}

bool HostAddress::is_any() const noexcept {
  return family() == AF_INET ? v4(*this).sin_addr.s_addr == htonl(INADDR_ANY)
                             : IN6_IS_ADDR_UNSPECIFIED(&v6(*this).sin6_addr);
}

bool HostAddress::is_loopback() const noexcept {
  return family() == AF_INET ? (ntohl(v4(*this).sin_addr.s_addr) >> 24) == 127
                             : IN6_IS_ADDR_LOOPBACK(&v6(*this).sin6_addr);
}

bool HostAddress::is_of_one_link() const noexcept {
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6(*this).sin6_addr);
}

HostAddress HostAddress::unmapped() const noexcept {
  if (family() != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6(*this).sin6_addr)) return *this;
  HostAddress address = any(AF_INET, port());
  std::memcpy(&reinterpret_cast<sockaddr_in&>(address.storage).sin_addr, v6(*this).sin6_addr.s6_addr + 12,
              sizeof(in_addr));
  return address;
}

std::string HostAddress::host() const {
  char text[NI_MAXHOST];
  const HostAddress shown = unmapped();
  return getnameinfo(shown.get(), shown.bytes, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "unknown";
}

std::string HostAddress::text() const { return HostPort{host(), port()}.text(); }

Result<std::vector<HostAddress>> resolve(const HostPort& where) { return ask_resolver(where, 0); }

Result<HostAddress> numeric_address(const HostPort& where) {
  const auto found = ask_resolver(where, AI_NUMERICHOST);
  if (!found) return found.error();
  return found.value().front();
}

std::vector<HostAddress> in_turns(const std::vector<HostAddress>& addresses) {
  std::vector<HostAddress> first, second, order;
  for (const HostAddress& address : addresses)
    (address.family() == addresses.front().family() ? first : second).push_back(address);
  for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i) {
    if (i < first.size()) order.push_back(first[i]);
    if (i < second.size()) order.push_back(second[i]);
  }
  return order;
}

Result<HostAddress> own_address(int socket) {
  HostAddress address;
  address.bytes = sizeof address.storage;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage), &address.bytes) == 0) return address;
  return Error{ErrorCode::io, fmt::format("a socket has no address: {}", base::system_error_text(errno))};
}

bool has_no_network() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const bool has_address =
        entry->ifa_addr != nullptr && (entry->ifa_addr->sa_family == AF_INET || entry->ifa_addr->sa_family == AF_INET6);
    if (has_address && (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0) return false;
  }
  return true;
}

}  // namespace tandem::comm::internal
