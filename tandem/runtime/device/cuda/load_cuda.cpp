// tandem/runtime/device/cuda/load_cuda.cpp: asks the dynamic loader, and refuses what another build made.
#include "tandem/runtime/device/cuda/load_cuda.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>

namespace tandem::runtime {

base::Result<const CudaModule*> load_cuda() {
  using base::Error;
  using base::ErrorCode;
  constexpr const char* file = "libtandem_device_cuda.so";
  void* const library = dlopen(file, RTLD_NOW | RTLD_NODELETE | RTLD_LOCAL);
  if (library == nullptr)
    return Error{ErrorCode::unsupported, fmt::format("CUDA cannot be used: {}. Build Tandem with TANDEM_CUDA, or name the folder of {} in "
                                                     "LD_LIBRARY_PATH",
                                                     dlerror(), file)};
  void* const entry = dlsym(library, "tandem_device_cuda_module");
  if (entry == nullptr) return Error{ErrorCode::malformed, fmt::format("{} is no module of Tandem; remove it", file)};
  const CudaModule& module = *reinterpret_cast<decltype(&tandem_device_cuda_module)>(entry)();
  const CudaModule ours;
  if (module.interface != ours.interface || module.layout != ours.layout || std::string_view(module.version) != TANDEM_VERSION)
    return Error{ErrorCode::unsupported, fmt::format("{} was made by another build, of Tandem {}, and this program is of Tandem {}; build both "
                                                     "together",
                                                     file, module.version, TANDEM_VERSION)};
  return &module;
}

}  // namespace tandem::runtime
