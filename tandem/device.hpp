// tandem/device.hpp: what a program needs that brings a device of its own (`Options::devices`).
#pragma once

#include "tandem/runtime/device/device.hpp"

namespace tandem {

using base::Waker;
using runtime::Copier;
using runtime::CopyRequest;
using runtime::Device;
using runtime::DeviceTask;
using runtime::DeviceUnit;
using runtime::MemoryNode;
using runtime::MessageMemory;

}  // namespace tandem
