// tandem/api/fewer_devices.hpp: the warning that this machine has fewer devices than an option asks for.
#pragma once

#include <cstddef>

#include "tandem/base/log.hpp"

namespace tandem {

/// Number of devices that an option asks for.
struct WantedDevices {
  const char* option;  ///< name of the option
  std::size_t count;   ///< value of the option
};

/// Warns that only `found` devices of kind `kind` exist; the program goes on with these.
inline void warn_of_fewer(base::Log& log, const char* kind, std::size_t found, const WantedDevices& wanted) {
  log.warn("option {} asks for {} devices, and this machine has {} {} device{}: the program uses {}", wanted.option,
           wanted.count, found, kind, found == 1 ? "" : "s", found == 1 ? "that one" : "those");
}

}  // namespace tandem
