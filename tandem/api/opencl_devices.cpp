// tandem/api/opencl_devices.cpp: loads the module of OpenCL, and takes its devices.
#include "tandem/api/opencl_devices.hpp"

#include <utility>

#include "tandem/api/fewer_devices.hpp"
#include "tandem/api/start_error.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/runtime/device/opencl/load_opencl.hpp"

namespace tandem {

void add_opencl_devices(runtime::World& world, const base::Config& config, base::Log& log, unsigned sharers) {
  const auto wanted = static_cast<unsigned>(config.get_int("opencl"));
  if (wanted == 0) return;
  const auto module = runtime::load_opencl();
  if (!module.ok()) throw StartError(module.error().message);
  auto units = module.value()->make({.most_devices = wanted,
                                     .depth = static_cast<unsigned>(config.get_int("opencl.depth")),
                                     .memory_bytes = static_cast<std::size_t>(config.get_bytes("opencl.memory")),
                                     .sharers = sharers});
  if (!units.ok()) throw StartError(units.error().message);
  if (units.value().empty())
    throw StartError(
        "option opencl asks for devices, and there is no OpenCL device here; install a driver (pocl-opencl-icd is one "
        "that "
        "computes on processors), or leave the option out");
  if (units.value().size() < wanted) warn_of_fewer(log, "OpenCL", units.value().size(), {"opencl", wanted});
  for (runtime::DeviceUnit& unit : units.value()) world.add_device(std::move(unit));
}

}  // namespace tandem
