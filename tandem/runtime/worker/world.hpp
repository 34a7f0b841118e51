// tandem/runtime/worker/world.hpp: the parts from which a runtime is made, and its options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/base/driver.hpp"
#include "tandem/base/hardware_counters.hpp"
#include "tandem/base/log.hpp"
#include "tandem/clock/clock.hpp"
#include "tandem/runtime/device/device.hpp"
#include "tandem/runtime/machine/machine.hpp"
#include "tandem/runtime/memory/memory_node.hpp"
#include "tandem/runtime/memory/page_locked_pool.hpp"
#include "tandem/runtime/sched/estimates.hpp"
#include "tandem/runtime/sched/contention/memory_gate.hpp"
#include "tandem/runtime/sched/contention/memory_shares.hpp"
#include "tandem/runtime/sched/policy.hpp"
#include "tandem/runtime/sched/policies/powers.hpp"
#include "tandem/runtime/device/emulation.hpp"
#include "tandem/runtime/exec/worker_spec.hpp"
#include "tandem/runtime/worker/energy_meter.hpp"

namespace tandem::runtime {

class DurationModels;
class ModelledHost;
class ModelledMemory;
struct RecordedSchedule;

struct CoreOptions {
  std::uint64_t window = 32'768;          ///< most tasks that are submitted and have not ended
  std::int64_t watchdog_ns = 30'000'000'000;  ///< when no task ends for this time, the log says why; 0: never
  bool watchdog_throws = false;           ///< then wait() throws StuckError instead of waiting on
  bool statistics = false;
  bool timeline = false;
  std::string graphviz;                   ///< file for the graph of the flow; empty: none
  std::int64_t poll_max_ns = 1'000;
  std::int64_t poll_for_ns = 20'000;
  bool adaptive_polling = true;           ///< see `Worker`
  unsigned tasks_per_step = 256;
  unsigned device_stretch = 16;           ///< see `WorkerOptions::stretch`
  std::int64_t begin_ahead_ns = 20'000;  ///< after a cancellation, tasks may still begin for about this time
  std::uint64_t seed = 1;
  DurationModels* models = nullptr;       ///< set: models that learn the durations of kernels. Outlive the runtime
  std::string explain;                    ///< names and numbers of tasks whose placement is explained; see `Explainer`
  std::function<void(std::string_view)> explain_to = {};  ///< gets the explanations; empty: standard error
  double copy_weight = 1;                 ///< see `Placer::weigh_copies`
  Emulation emulation = {};               ///< empty: kernels run
  /// Of an earlier run, which this one follows with a policy that places no tasks; null: none.
  std::shared_ptr<const RecordedSchedule> schedule = {};
  /// Memory that emulated kernels of CPU workers share; null: none. Outlives the runtime.
  ModelledMemory* modelled_memory = nullptr;
  /// Cores that emulated kernels share with the runtime's own work; null: none is short. Outlives the runtime.
  ModelledHost* modelled_host = nullptr;
  Objective objective = Objective::time;  ///< what policies that count energy minimise
  std::int64_t energy_every_ns = 50'000'000;  ///< between samples of `World::energy`
  model::PowerTable powers = {};          ///< powers measured by earlier runs
  MemoryGateRule memory_gate = {};        ///< limits of memory-bound tasks; by default none
  /// For policies that look ahead; by default kernels and copies do not slow each other down.
  MemoryShares memory_shares = {};
};

/// The parts of a runtime in a world: real, test or virtual.
struct World {
  std::unique_ptr<base::Driver> driver;
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Estimates> estimates;  ///< for policies that look ahead; null: durations learnt in the run
  const clock::Clock* clock = nullptr;                ///< outlives the runtime
  base::Log* log = nullptr;                           ///< outlives the runtime
  Machine machine;                                    ///< worker 0 is the caller if `caller_works`
  /// The machine's memories beyond main memory.
  std::vector<std::pair<std::unique_ptr<MemoryNode>, std::unique_ptr<Copier>>> nodes;
  std::shared_ptr<PageLockedPool> page_locked;        ///< source of data in main memory; null: the system
  std::unique_ptr<Powers> powers;  ///< for policies; null: the figures of the machine's workers, or measured powers
  std::vector<EnergySource> energy;                   ///< counters, and the workers whose energy they show; empty: none
  std::vector<std::unique_ptr<Device>> devices;  ///< by worker; null, or missing: the worker's thread runs the kernels
  bool caller_works = true;
  /// Opens the counters of a worker's thread, for the trace; empty: kernels are not counted.
  base::OpenCounters counters;
  /// Returns the NUMA node of memory, counted from 0, for the trace; empty: unknown.
  std::function<std::optional<std::size_t>(const void* memory, std::size_t bytes)> numa_node_of;

  /// Adds `count` CPU workers that are equally far from each other.
  void add_cpu_workers(unsigned count);
  /// Adds a worker with the device `unit`, and the unit's memory. After the CPU workers.
  void add_device(DeviceUnit unit);
  /// Adds a memory with its copier. Returns its number.
  NodeIndex add_memory(MachineNode node, std::unique_ptr<MemoryNode> memory, std::unique_ptr<Copier> copier);
  /// Makes the memory for data in main memory.
  std::unique_ptr<MemoryNode> make_main_memory() const;
  /// Sets the device that runs the kernels of `worker`.
  void set_device(unsigned worker, std::unique_ptr<Device> device);
  /// Specifications of the workers, for the parts that run tasks.
  std::vector<WorkerSpec> worker_specs() const;
};

}  // namespace tandem::runtime
