// tandem/runtime/device/opencl/load_opencl.cpp: the module of OpenCL devices.
#include "tandem/runtime/device/opencl/load_opencl.hpp"

#include "tandem/runtime/device/load_device_module.hpp"

namespace tandem::runtime {

base::Result<const OpenClModule*> load_opencl() {
  return load_device_module<OpenClModule>({.kind = "OpenCL",
                                        .file = "libtandem_device_opencl.so",
                                        .entry = "tandem_device_opencl_module",
                                        .remedy = "Install ocl-icd-opencl-dev and build Tandem again"},
                                       TANDEM_VERSION);
}

}  // namespace tandem::runtime
