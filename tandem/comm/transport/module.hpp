// tandem/comm/transport/module.hpp: the interface between a program and a transport in a shared library.
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

/// Changes with every change of `transport.hpp`, of `TransportNeeds` and of the types in them: the program calls the
/// module's objects directly, and the module calls the program's.
inline constexpr std::uint32_t transport_interface = 2;

/// What a transport is made from. Valid during the call; `sink` and `log` outlive the transport.
struct TransportNeeds {
  const EndpointOptions& options;
  const Job& job;
  PacketSink& sink;
  base::Log& log;
};

/// A hash that differs between builds of one version whose shared types have different layouts, because of an edited
/// header or another standard library.
inline constexpr std::uint32_t transport_layout = [] {
  std::uint32_t hash = 0;
  for (const std::size_t bytes :
       {sizeof(EndpointOptions), sizeof(Job), sizeof(PeerCard), sizeof(base::Log), sizeof(base::Error), sizeof(Link),
        sizeof(Packet), sizeof(Landing), sizeof(Capabilities), sizeof(std::string)}) {
    hash = hash * 16777619U + static_cast<std::uint32_t>(bytes);
  }
  return hash;
}();

/// What a module says of itself. The first three members never change their places, so that a program can name the
/// version of any module. A program calls `make` only if all members before it equal its own. A module has no state
/// except its transports, which the caller deletes. It is never unloaded, so its code may run until the process ends.
struct TransportModule {
  std::uint32_t interface = transport_interface;
  std::uint32_t wire_version = wire::version;
  const char* version = kVersion;
  std::uint32_t layout = transport_layout;
  /// Makes the transport. Errors: as for `make_transports`.
  base::Result<std::unique_ptr<Transport>> (*make)(const TransportNeeds& needs) = nullptr;
};

/// The one symbol that a module exports: a function without arguments that returns its `const TransportModule*`.
inline constexpr const char* module_entry = "tandem_comm_transport_module";

}  // namespace tandem::comm::internal

/// Defined by each module; never called by name.
extern "C" [[gnu::visibility("default")]] const tandem::comm::internal::TransportModule*
tandem_comm_transport_module() noexcept;
