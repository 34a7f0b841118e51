// tandem/runtime/device/cuda/load_cuda.hpp: CUDA devices, from a shared library that only programs with them load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tandem/base/result.hpp"
#include "tandem/runtime/device/device.hpp"
#include "tandem/runtime/memory/page_locked_pool.hpp"

namespace tandem::runtime {

/// A CUDA device of this machine, for people.
struct CudaFacts {
  std::string name;
  std::size_t memory_bytes = 0;
  unsigned multiprocessors = 0;
  unsigned major = 0;  ///< compute capability
  unsigned minor = 0;  ///< of it, too
};

struct CudaOptions {
  unsigned most_devices = 0;
  unsigned depth = 4;            ///< tasks in flight on each, each with a stream
  bool graphs = false;           ///< kernels that come again one behind the other are launched as graphs
  bool messages = false;         ///< messages to other ranks may be read in the memory of the devices
  /// Budget of each device's memory; 0: three quarters of what is free there, divided by `sharers`.
  std::size_t memory_bytes = 0;
  unsigned sharers = 1;          ///< processes of the job that use the same devices
  std::shared_ptr<PageLockedPool> page_locked = {};  ///< for copies of the devices; null: there is none
  std::string libraries;         ///< folder of NVIDIA's libraries, which comes before others; empty: where the dynamic loader looks
};

/// What the module says of itself; a program calls its functions only if the first three members equal its own.
struct CudaModule {
  std::uint32_t interface = 5;  ///< changes with `Device`, `MemoryNode`, `Copier`, `CudaQueue` and the types in them
  std::uint32_t layout = [] {
    std::uint32_t hash = 0;
    for (const std::size_t bytes : {sizeof(DeviceUnit), sizeof(DeviceTask), sizeof(Device::Ended), sizeof(Handle), sizeof(Task), sizeof(KernelCall),
                                    sizeof(CopyRequest), sizeof(CudaOptions), sizeof(PageLockedPool), sizeof(std::string)})
      hash = hash * 16777619U + static_cast<std::uint32_t>(bytes);
    return hash;
  }();
  const char* version = "";  ///< of Tandem
  /// Errors: there is no driver, or none that can be used. A driver without devices gives none.
  base::Result<std::vector<CudaFacts>> (*find)(const std::string& libraries) = nullptr;
  /// The first devices. Errors: as `find`; a device that cannot be used.
  base::Result<std::vector<DeviceUnit>> (*make)(const CudaOptions& options) = nullptr;
  /// Gives out page-locked memory for all devices. Errors: as `find`; no device.
  base::Result<std::unique_ptr<PageLocker>> (*page_locker)(const std::string& libraries) = nullptr;
  /// Locks pages of main memory for all devices, until what is returned is gone. Errors: as `find`; no device; pages that cannot be locked.
  base::Result<std::shared_ptr<void>> (*lock)(const std::string& libraries, void* memory, std::size_t bytes) = nullptr;
};

/// Loads libtandem_device_cuda.so from where the dynamic loader looks, as comm's modules. It stays loaded. Thread-safe. Errors: it is
/// missing, or belongs to another build.
base::Result<const CudaModule*> load_cuda();

}  // namespace tandem::runtime

/// Defined by the module; never called by name.
extern "C" [[gnu::visibility("default")]] const tandem::runtime::CudaModule* tandem_device_cuda_module() noexcept;
