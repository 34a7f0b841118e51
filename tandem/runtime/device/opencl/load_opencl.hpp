// tandem/runtime/device/opencl/load_opencl.hpp: OpenCL devices, from a shared library that only programs with them
// load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/runtime/device/device.hpp"

namespace tandem::runtime {

/// Description of an OpenCL device of this machine, for people.
struct OpenClFacts {
  std::string name;
  std::string platform;
  std::string version;
  std::size_t memory_bytes = 0;
  unsigned units = 0;         ///< compute units
  bool is_processor = false;  ///< the host's processor stands for a device
};

struct OpenClOptions {
  unsigned most_devices = 0;
  unsigned depth = 3;             ///< tasks in flight on each device
  std::size_t memory_bytes = 0;   ///< budget of each device's memory; 0: three quarters of it, divided by `sharers`
  unsigned sharers = 1;           ///< processes of the job that use the same devices
};

/// Description of the module; a program calls its functions only if the first three members equal its own.
struct OpenClModule {
  std::uint32_t interface = 4;  ///< changes with `Device`, `MemoryNode`, `Copier`, `OpenClQueue` and the types in them
  std::uint32_t layout = [] {
    std::uint32_t hash = 0;
    for (const std::size_t bytes : {sizeof(DeviceUnit), sizeof(DeviceTask), sizeof(Device::Ended), sizeof(Handle),
                                    sizeof(Task), sizeof(KernelCall), sizeof(CopyRequest), sizeof(std::string)})
      hash = hash * 16777619U + static_cast<std::uint32_t>(bytes);
    return hash;
  }();
  const char* version = "";  ///< of Tandem
  std::vector<OpenClFacts> (*find)() = nullptr;
  /// Makes the devices, those that are no processors first. Errors: a device that cannot be used.
  base::Result<std::vector<DeviceUnit>> (*make)(const OpenClOptions& options) = nullptr;
};

/// Loads libtandem_device_opencl.so by the dynamic loader, as the modules of comm. It stays loaded. Thread-safe.
/// Errors: it is missing (built without OpenCL, or the loader does not find it), or belongs to another build.
base::Result<const OpenClModule*> load_opencl();

}  // namespace tandem::runtime

/// Defined by the module; never called by name.
extern "C" [[gnu::visibility("default")]] const tandem::runtime::OpenClModule* tandem_device_opencl_module() noexcept;
