// tandem/api/cuda_devices.cpp: loads the module of CUDA, and takes its devices.
#include "tandem/api/cuda_devices.hpp"

#include <memory>
#include <string>
#include <utility>

#include "tandem/api/fewer_devices.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/runtime/device/cuda/load_cuda.hpp"

namespace tandem {

void add_cuda_devices(runtime::World& world, const base::Config& config, base::Log& log, unsigned sharers) {
  const auto wanted = static_cast<unsigned>(config.get_int("cuda"));
  if (wanted == 0) return;
  const auto module = runtime::load_cuda();
  if (!module.ok()) throw StartError(module.error().message);
  const std::string libraries = config.get_string("cuda.libraries");
  std::shared_ptr<runtime::PageLockedPool> page_locked;
  if (const auto bound = static_cast<std::size_t>(config.get_bytes("cuda.page_locked")); bound != 0) {
    auto locker = module.value()->page_locker(libraries);
    // Without a driver or a device a later message is better.
    if (locker.ok()) page_locked = std::make_shared<runtime::PageLockedPool>(std::move(locker).value(), bound, log);
  }
  auto units = module.value()->make({.most_devices = wanted,
                                     .depth = static_cast<unsigned>(config.get_int("cuda.depth")),
                                     .graphs = config.get_bool("cuda.graphs"),
                                     .messages = config.get_bool("cuda.messages"),
                                     .memory_bytes = static_cast<std::size_t>(config.get_bytes("cuda.memory")),
                                     .sharers = sharers,
                                     .page_locked = page_locked,
                                     .libraries = libraries});
  if (!units.ok()) throw StartError("option cuda asks for devices, and " + units.error().message);
  if (units.value().empty())
    throw StartError("option cuda asks for devices, and the CUDA driver here has none; leave the option out");
  if (units.value().size() < wanted) warn_of_fewer(log, "CUDA", units.value().size(), {"cuda", wanted});
  world.page_locked = std::move(page_locked);
  for (runtime::DeviceUnit& unit : units.value()) world.add_device(std::move(unit));
}

}  // namespace tandem
