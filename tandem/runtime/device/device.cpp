// tandem/runtime/device/device.cpp: the call of a kernel by a device.
#include "tandem/runtime/device/device.hpp"

#include "tandem/runtime/device/private_memory.hpp"

namespace tandem::runtime {

DeviceTask::DeviceTask(unsigned place, unsigned lane, unsigned worker, NodeIndex node)
    : place_(place), lane_(lane), worker_(worker), node_(node), private_memory_(std::make_unique<PrivateMemory>()) {}
DeviceTask::~DeviceTask() = default;
DeviceTask::DeviceTask(DeviceTask&&) noexcept = default;

void DeviceTask::release_scratch() noexcept { private_memory_->release_scratch(); }

const std::string& DeviceTask::codelet() const noexcept { return task_->codelet->name; }

void DeviceTask::run(void* queue) {
  KernelCall now = call(queue);
  if (task_->special) private_memory_->invoke(now, *memory_);
  else task_->ops->invoke(now);
}

}  // namespace tandem::runtime
