// tandem/runtime/worker/world.hpp: what a runtime is made of, and its options.
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
#include "tandem/runtime/sched/memory_gate.hpp"
#include "tandem/runtime/sched/memory_shares.hpp"
#include "tandem/runtime/sched/policy.hpp"
#include "tandem/runtime/sched/powers.hpp"
#include "tandem/runtime/device/emulation.hpp"
#include "tandem/runtime/exec/worker_spec.hpp"
#include "tandem/runtime/worker/energy_meter.hpp"

namespace tandem::runtime {

class DurationModels;
class ModelledMemory;

struct CoreOptions {
  std::uint64_t window = 32'768;          ///< tasks submitted and not ended, at most
  std::int64_t watchdog_ns = 30'000'000'000;  ///< when no task ends for so long, the log says why; 0: never
  bool watchdog_throws = false;           ///< then wait() throws StuckError instead of waiting on
  bool statistics = false;
  bool timeline = false;
  std::string graphviz;                   ///< file for the graph of the flow; empty: none
  std::int64_t poll_max_ns = 1'000;
  std::int64_t poll_for_ns = 20'000;
  bool adaptive_polling = true;           ///< see `Worker`
  unsigned tasks_per_step = 256;
  unsigned device_stretch = 16;           ///< see `WorkerOptions::stretch`
  std::int64_t begin_ahead_ns = 20'000;  ///< after a cancellation, tasks may still begin for about so long
  std::uint64_t seed = 1;
  DurationModels* models = nullptr;       ///< set: they learn the durations of kernels. Outlive the runtime
  std::string explain;                    ///< names and numbers of tasks: say why they went where they went; see `Explainer`
  std::function<void(std::string_view)> explain_to = {};  ///< who is told; empty: standard error
  double copy_weight = 1;                 ///< as `Placer::weigh_copies`
  Emulation emulation = {};               ///< empty: kernels run
  ModelledMemory* modelled_memory = nullptr;  ///< that emulated kernels of CPU workers share; null: none. Outlives the runtime
  Objective objective = Objective::time;  ///< of policies that count energy
  std::int64_t energy_every_ns = 50'000'000;  ///< between samples of `World::energy`
  model::PowerTable powers = {};          ///< that earlier runs have measured
  MemoryGateRule memory_gate = {};        ///< of memory-bound tasks; as it is: no limit
  MemoryShares memory_shares = {};        ///< for policies that look ahead; as it is: kernels and copies do not hinder each other
};

/// What a runtime is made of in a world: real, test or virtual.
struct World {
  std::unique_ptr<base::Driver> driver;
  std::unique_ptr<Policy> policy;
  std::unique_ptr<Estimates> estimates;               ///< for policies that look ahead; null: what the run itself shows
  const clock::Clock* clock = nullptr;                ///< outlives the runtime
  base::Log* log = nullptr;                           ///< outlives the runtime
  Machine machine;                                    ///< worker 0 is the caller if `caller_works`
  std::vector<std::pair<std::unique_ptr<MemoryNode>, std::unique_ptr<Copier>>> nodes;  ///< of the machine's, those beyond main memory
  std::shared_ptr<PageLockedPool> page_locked;        ///< from which data in main memory comes; null: from the system
  std::unique_ptr<Powers> powers;                     ///< for policies; null: the figures of the machine's workers, or what counters show
  std::vector<EnergySource> energy;                   ///< counters, and the workers whose energy they show; empty: none
  std::vector<std::unique_ptr<Device>> devices;       ///< by worker; null, or missing: the worker's thread runs the kernels
  bool caller_works = true;
  base::OpenCounters counters;                        ///< of a worker's thread, for the trace; empty: kernels are not counted
  /// On which NUMA node, counted from 0, memory lies, for the trace; empty: unknown.
  std::function<std::optional<std::size_t>(const void* memory, std::size_t bytes)> numa_node_of;

  /// `count` CPU workers that are equally far from each other.
  void add_cpu_workers(unsigned count);
  /// One more worker, which works on `unit`, and the unit's memory. After the CPU workers.
  void add_device(DeviceUnit unit);
  /// One more memory, with its copies. Returns its number.
  NodeIndex add_memory(MachineNode node, std::unique_ptr<MemoryNode> memory, std::unique_ptr<Copier> copier);
  /// A memory from which data in main memory comes.
  std::unique_ptr<MemoryNode> make_main_memory() const;
  /// What runs the kernels of `worker`.
  void set_device(unsigned worker, std::unique_ptr<Device> device);
  /// For the parts that run tasks: by worker.
  std::vector<WorkerSpec> worker_specs() const;
};

}  // namespace tandem::runtime
