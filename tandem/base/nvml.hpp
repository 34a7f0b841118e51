// tandem/base/nvml.hpp: energy counters of NVIDIA's devices, by the library of their driver, which is loaded on demand.
#pragma once

#include <memory>
#include <string>

#include "tandem/base/energy_counter.hpp"
#include "tandem/base/result.hpp"

namespace tandem::base {

/// NVIDIA's management library (NVML), a part of the driver. Any thread; counters keep it.
class Nvml : public std::enable_shared_from_this<Nvml> {
 public:
  static constexpr const char* kLibrary = "libnvidia-ml.so.1";

  /// Loads and starts the library. `library`: a name for the dynamic loader, or a path. Errors: not_found (no such
  /// library), unsupported (too old, or it does not start: no driver).
  static Result<std::shared_ptr<Nvml>> load(const std::string& library = kLibrary);
  virtual ~Nvml() = default;

  virtual unsigned device_count() const = 0;  ///< that this process may see
  /// The device's energy, by its number in the library. Counts since Volta; 1 ms old at most on most devices. Error:
  /// unsupported.
  virtual Result<std::unique_ptr<EnergyCounter>> counter(unsigned device) = 0;
  /// The energy of the device at an address such as 0000:3b:00.0. Errors: not_found, unsupported.
  virtual Result<std::unique_ptr<EnergyCounter>> counter_at(const std::string& bus_address) = 0;
};

}  // namespace tandem::base
