// tandem/runtime/device/cuda/load_cuda.cpp: the module of CUDA devices.
#include "tandem/runtime/device/cuda/load_cuda.hpp"

#include "tandem/runtime/device/load_device_module.hpp"

namespace tandem::runtime {

base::Result<const CudaModule*> load_cuda() {
  return load_device_module<CudaModule>({.kind = "CUDA",
                                        .file = "libtandem_device_cuda.so",
                                        .entry = "tandem_device_cuda_module",
                                        .remedy = "Build Tandem with TANDEM_CUDA"},
                                       TANDEM_VERSION);
}

}  // namespace tandem::runtime
