// tandem/comm/transport/load_module.hpp: loads the shared library of a transport that few programs need.
#pragma once

#include <string>

#include "tandem/base/result.hpp"
#include "tandem/comm/transport/module.hpp"

namespace tandem::comm::internal {

/// A transport whose libraries are loaded only into programs that ask for it: loading UCX installs signal handlers, and
/// loading an MPI library takes milliseconds.
struct ModuleName {
  std::string transport;  ///< the file is libtandem_comm_NAME.so
  std::string package;    ///< that a build needs to make the module, for messages
  /// Whether the module's libraries share their symbols with the libraries that they load themselves: plug-ins of some
  /// MPI libraries need it.
  bool shares_symbols = false;
};

/// Loads the module from `folder`, or, if that is empty, from where the dynamic loader looks: LD_LIBRARY_PATH, the run
/// path of the program (which names the build's folder of modules, or the installed package's), the system's folders.
/// It stays loaded. Thread-safe. Errors: unsupported (the module, or a library that it needs, is missing; or another
/// version of Tandem made it: the message names both), malformed (the file is no module).
base::Result<const TransportModule*> load_module(const ModuleName& name, const std::string& folder);

}  // namespace tandem::comm::internal
