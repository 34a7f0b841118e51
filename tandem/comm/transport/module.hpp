// tandem/comm/transport/module.hpp: a transport in a shared library of its own, and what it and the program agree on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tandem/base/log.hpp"
#include "tandem/base/result.hpp"
#include "tandem/comm/bootstrap/job.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/transport/transport.hpp"
#include "tandem/comm/transports.hpp"
#include "tandem/comm/wire.hpp"

namespace tandem::comm::internal {

/// Changes with every change of `transport.hpp`, of `TransportNeeds` and of what these name: a program calls a module's objects
/// directly, and the module the program's.
inline constexpr std::uint32_t transport_interface = 1;

/// What a transport is made from. Valid during the call; `sink` and `log` outlive the transport.
struct TransportNeeds {
  const EndpointOptions& options;
  const Job& job;
  PacketSink& sink;
  base::Log& log;
};

/// Differs, in all likelihood, between builds of one version in which what crosses the boundary has another layout: an edited
/// header, or another standard library.
inline constexpr std::uint32_t transport_layout = [] {
  std::uint32_t hash = 0;
  for (const std::size_t bytes : {sizeof(EndpointOptions), sizeof(Job), sizeof(PeerCard), sizeof(base::Log), sizeof(base::Error),
                                  sizeof(Link), sizeof(Packet), sizeof(Landing), sizeof(Capabilities), sizeof(std::string)}) {
    hash = hash * 16777619U + static_cast<std::uint32_t>(bytes);
  }
  return hash;
}();

/// What a module says of itself. The first three members keep their places for ever, so that a program can name the version of
/// any module; `make` is called only by a program of which all that stands before it is its own. A module has no state beside
/// its transports, which the caller deletes as any other's, and code of it may run until the process ends: it is never unloaded.
struct TransportModule {
  std::uint32_t interface = transport_interface;
  std::uint32_t wire_version = wire::version;
  const char* version = kVersion;
  std::uint32_t layout = transport_layout;
  /// Errors: as `make_transports` says.
  base::Result<std::unique_ptr<Transport>> (*make)(const TransportNeeds& needs) = nullptr;
};

/// The one symbol that a module exports: a function without arguments that returns its `const TransportModule*`.
inline constexpr const char* module_entry = "tandem_comm_transport_module";

}  // namespace tandem::comm::internal

/// Defined by each module; never called by name.
extern "C" [[gnu::visibility("default")]] const tandem::comm::internal::TransportModule* tandem_comm_transport_module() noexcept;
