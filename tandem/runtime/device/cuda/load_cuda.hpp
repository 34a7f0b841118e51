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

/// Description of a CUDA device of this machine, for people.
struct CudaFacts {
  std::string name;
  std::size_t memory_bytes = 0;
  unsigned multiprocessors = 0;
  unsigned major = 0;  ///< compute capability
  unsigned minor = 0;  ///< minor number of the compute capability
};

struct CudaOptions {
  unsigned most_devices = 0;
  unsigned depth = 4;            ///< tasks in flight on each device, each with a stream
  bool graphs = false;           ///< sequences of kernels that come again are launched as graphs
  bool messages = false;         ///< networks may read and write messages in the memory of the devices
  /// Budget of each device's memory; 0: three quarters of its free bytes, divided by `sharers`.
  std::size_t memory_bytes = 0;
  unsigned sharers = 1;          ///< processes of the job that use the same devices
  std::shared_ptr<PageLockedPool> page_locked = {};  ///< for copies of the devices; null: there is none
  std::string libraries;         ///< folder of NVIDIA's libraries, searched first; empty: the dynamic loader's folders
};

/// Description of the module; a program calls its functions only if the first three members equal its own.
struct CudaModule {
  std::uint32_t interface = 5;  ///< changes with `Device`, `MemoryNode`, `Copier`, `CudaQueue` and the types in them
  std::uint32_t layout = [] {
    std::uint32_t hash = 0;
    for (const std::size_t bytes :
         {sizeof(DeviceUnit), sizeof(DeviceTask), sizeof(Device::Ended), sizeof(Handle), sizeof(Task),
          sizeof(KernelCall), sizeof(CopyRequest), sizeof(CudaOptions), sizeof(PageLockedPool), sizeof(std::string)})
      hash = hash * 16777619U + static_cast<std::uint32_t>(bytes);
    return hash;
  }();
  const char* version = "";  ///< of Tandem
  /// Lists the devices; a driver without devices gives none. Errors: there is no driver, or none that can be used.
  base::Result<std::vector<CudaFacts>> (*find)(const std::string& libraries) = nullptr;
  /// Makes the first devices. Errors: as `find`; a device that cannot be used.
  base::Result<std::vector<DeviceUnit>> (*make)(const CudaOptions& options) = nullptr;
  /// Makes the source of page-locked memory for all devices. Errors: as `find`; no device.
  base::Result<std::unique_ptr<PageLocker>> (*page_locker)(const std::string& libraries) = nullptr;
  /// Locks pages of main memory for all devices until the returned object is gone. Errors: as `find`; no device; pages
  /// that cannot be locked.
  base::Result<std::shared_ptr<void>> (*lock)(const std::string& libraries, void* memory, std::size_t bytes) = nullptr;
};

/// Loads libtandem_device_cuda.so by the dynamic loader, as the modules of comm. It stays loaded. Thread-safe. Errors:
/// it is missing, or belongs to another build.
base::Result<const CudaModule*> load_cuda();

}  // namespace tandem::runtime

/// Defined by the module; never called by name.
extern "C" [[gnu::visibility("default")]] const tandem::runtime::CudaModule* tandem_device_cuda_module() noexcept;
