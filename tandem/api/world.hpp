// tandem/api/world.hpp: the worlds in which a runtime can live: real threads, or one event loop for tests.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tandem/api/learnt_models.hpp"
#include "tandem/base/affinity.hpp"
#include "tandem/base/config.hpp"
#include "tandem/base/event_loop.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/runtime/worker/world.hpp"

namespace tandem {

/// Resources of the parts of a world: log, clock, topology. Outlives the runtime made from it.
struct WorldResources {
  std::unique_ptr<base::Log> log;
  std::unique_ptr<clock::Clock> clock;
  std::unique_ptr<base::Topology> topology;  ///< real world only
  base::EventLoop* loop = nullptr;           ///< test world only; owned by the world's driver
  runtime::PolicyRegistry policies;
  std::unique_ptr<LearntModels> models;      ///< null: durations are not learnt
  std::uint32_t ranks_here = 1;              ///< ranks of the job on this machine
  bool has_own_cores = true;                 ///< no other rank uses the cores of `topology`
  /// Keeps the thread that made the runtime on these cores; null: the launcher does.
  std::unique_ptr<base::ScopedAffinity> home;
};

/// The core of a worker.
struct WorkerPlacement {
  std::size_t worker = 0;
  std::optional<base::CoreId> core = {};  ///< none: anywhere
  bool is_caller = false;
};

/// Place of a rank among those of its host.
struct RankShare {
  std::uint32_t ranks_here = 1;
  bool has_own_cores = true;  ///< no other rank uses the topology's cores
};

/// Plans workers by the options: as many as cores, or fewer if this rank's part of the cgroup's quota of processor time
/// allows less. Worker 0 is the calling thread, which is bound to no single core; worker i goes to core i, unless there
/// are more workers than cores; with option `caller.numa`, cores of that NUMA node come first, and worker 0 has the
/// first of them. A rank without its own cores divides their number by the ranks, and the system places its workers.
/// The progress thread's core does not count if it is reserved.
std::vector<WorkerPlacement> plan_workers(const base::Topology& topology, std::optional<double> cpu_quota,
                                          const base::Config& config, const RankShare& share = {});

/// The cores near a NUMA node, by its index in `topology.numa_nodes()`. Throws StartError if there are none.
std::vector<base::CoreId> cores_near(const base::Topology& topology, std::size_t numa_place);

/// The core to which a worker is bound, or that stands for an unbound one.
base::CoreId core_of(const WorkerPlacement& placement, const base::Topology& topology);

/// A world with the clock and the log of `resources`, and with what options say of any machine: the policy, and whether
/// the caller works. It has no driver and no workers yet. Throws StartError for an unknown policy.
runtime::World begin_world(const base::Config& config, const WorldResources& resources);

/// Makes a world with threads bound to the cores of `resources.topology`, or of this process when that is null, and
/// real clocks. Throws StartError for an unknown policy.
runtime::World make_real_world(const base::Config& config, WorldResources& resources);

/// Default value of option `sched`.
inline constexpr const char* kAutomaticPolicy = "auto";
/// Chooses the policy for the workers, once all are known, if the option leaves it open; puts its name into `config`.
void settle_policy(runtime::World& world, base::Config& config, const WorldResources& resources);
/// The schedule that option `sched.recorded` names, for this rank of `ranks` with so many workers; null: none. Throws
/// StartError.
std::shared_ptr<const runtime::RecordedSchedule> find_schedule(const base::Config& config, std::uint32_t rank,
                                                               std::uint32_t ranks, std::size_t workers);
/// If the policy looks ahead: measures unknown rates of copies between NUMA nodes, and to and from devices. Called
/// after `settle_policy`. Logged at level `info`.
void measure_links_for_policy(runtime::World& world, base::Log& log);

struct TestWorldOptions {
  std::uint64_t seed = 1;
  unsigned workers = 2;
  std::string sched = "lws";
  /// Number of further workers of kind DeviceKind::user, each with a memory node that only copies reach; a copy takes
  /// up to `copy_ns` of the loop's time, drawn from the seed.
  unsigned devices = 0;
  unsigned device_depth = 1;  ///< tasks that each device has in flight, whose kernels run one after the other
  std::int64_t copy_ns = 1'000;
  /// Set: a copy takes this time instead, and the copies from or to a device go one after the other.
  std::optional<runtime::MachineLink> link = {};
  /// Messages that are read in these memories, which are plain memory. Such a message takes no time of `link`.
  runtime::MessageMemory device_messages = runtime::MessageMemory::none;
  std::size_t device_bytes = 0;  ///< budget of each device's memory; 0: no limit
  std::size_t main_bytes = 0;    ///< budget of main memory, with a storage node beside it; 0: no limit
  /// Memory that copies of `link` share with modelled kernels; null: none. Outlives the world.
  runtime::ModelledMemory* memory = nullptr;
  /// Loop in which copies end, and which outlives the world; null: the world's own, which drives it.
  base::EventLoop* loop = nullptr;
};

/// Makes a world with one thread, manual time, and an order of everything drawn from the seed.
runtime::World make_test_world(const TestWorldOptions& options, WorldResources& resources);

}  // namespace tandem
