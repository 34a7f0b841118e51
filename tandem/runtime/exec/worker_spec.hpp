// tandem/runtime/exec/worker_spec.hpp: the device of a worker, and where it works.
#pragma once

#include "tandem/runtime/data/handle.hpp"
#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime {

class Device;

/// A worker's device and the memory that it works in.
struct WorkerSpec {
  DeviceKind device = DeviceKind::cpu;
  NodeIndex node = 0;
  int core = -1;           ///< -1: any
  unsigned numa_node = 0;  ///< NUMA node of the core, counted from 0
  bool replicas_leave = false;  ///< some memory has a budget
  /// Private copies of this worker's `reduce` accesses move; see `Memory::bind_private_copies`.
  bool binds_copies = false;
  bool brings_copies = false;   ///< private copies of some worker's accesses move
  Device* unit = nullptr;       ///< device that runs the kernels; null: the worker's thread. Outlives the worker
};

}  // namespace tandem::runtime
