// tandem/api/program_world.cpp: adds devices and their figures to the CPU workers.
#include "tandem/api/program_world.hpp"

#include "tandem/api/cuda_devices.hpp"
#include "tandem/api/device_cores.hpp"
#include "tandem/api/machine_option.hpp"
#include "tandem/api/opencl_devices.hpp"

namespace tandem {

runtime::World make_program_world(const base::Config& config, WorldResources& resources,
                                  const std::vector<std::function<runtime::DeviceUnit()>>& devices) {
  runtime::World world = make_real_world(config, resources);
  add_opencl_devices(world, config, *resources.log, resources.ranks_here);
  add_cuda_devices(world, config, *resources.log, resources.ranks_here);
  for (const auto& make : devices) world.add_device(make());
  bind_device_workers(world, config, *resources.topology, *resources.log);
  take_described_machine(world, config, *resources.log);
  return world;
}

}  // namespace tandem
