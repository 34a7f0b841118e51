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

/// What the parts of a world use: log, clock, topology. Outlives the runtime made from it.
struct WorldResources {
  std::unique_ptr<base::Log> log;
  std::unique_ptr<clock::Clock> clock;
  std::unique_ptr<base::Topology> topology;  ///< real world only
  base::EventLoop* loop = nullptr;           ///< test world only; owned by the world's driver
  runtime::PolicyRegistry policies;
  std::unique_ptr<LearntModels> models;      ///< null: durations are not learnt
  std::uint32_t ranks_here = 1;              ///< of the job on this machine
  bool has_own_cores = true;                 ///< no other rank uses the cores of `topology`
  std::unique_ptr<base::ScopedAffinity> home;  ///< keeps the thread that made the runtime on them; null: the launcher does
};

/// Where a worker runs.
struct WorkerPlacement {
  std::size_t worker = 0;
  std::optional<base::CoreId> core = {};  ///< none: anywhere
  bool is_caller = false;
};

/// How a rank stands among those of its host.
struct RankShare {
  std::uint32_t ranks_here = 1;
  bool has_own_cores = true;  ///< no other rank uses the topology's cores
};

/// By the options: as many workers as cores, or as this rank's part of the cgroup's quota of processor time allows if that is less;
/// worker 0 is the calling thread, which is bound to no single core; worker i goes to core i, unless there are more workers than
/// cores. A rank without cores of its own divides their number by the ranks, and the system places its workers. The core that the
/// progress thread is bound to counts as none if it is reserved.
std::vector<WorkerPlacement> plan_workers(const base::Topology& topology, std::optional<double> cpu_quota,
                                          const base::Config& config, const RankShare& share = {});

/// The core to which a worker is bound, or that stands for it where it is not.
base::CoreId core_of(const WorkerPlacement& placement, const base::Topology& topology);

/// Threads bound to the cores of `resources.topology`, or of this process when that is null; real clocks. Throws StartError for an unknown policy.
runtime::World make_real_world(const base::Config& config, WorldResources& resources);

/// What option `sched` says by default.
inline constexpr const char* kAutomaticPolicy = "auto";
/// When all workers are known: the policy for them where the option leaves it open, and its name in `config`.
void settle_policy(runtime::World& world, base::Config& config, const WorldResources& resources);
/// Afterwards, if the policy looks ahead: how fast copies between NUMA nodes, and to and from devices are, as far as nobody has said it. Told at log level
/// `info`.
void measure_links_for_policy(runtime::World& world, base::Log& log);

struct TestWorldOptions {
  std::uint64_t seed = 1;
  unsigned workers = 2;
  std::string sched = "lws";
  /// Further workers of kind DeviceKind::user, each with a memory node of its own that is reached only by copies; a copy takes up
  /// to `copy_ns` of the loop's time, drawn from the seed.
  unsigned devices = 0;
  unsigned device_depth = 1;  ///< tasks that each of them has in flight, whose kernels run one after the other
  std::int64_t copy_ns = 1'000;
  /// Set: a copy takes this time instead, and the copies from or to a device go one after the other.
  std::optional<runtime::MachineLink> link = {};
  /// Which messages are read in these memories, which are plain memory. Such a message takes none of the time of `link`.
  runtime::MessageMemory device_messages = runtime::MessageMemory::none;
  std::size_t device_bytes = 0;  ///< budget of each device's memory; 0: no limit
  std::size_t main_bytes = 0;    ///< budget of main memory, beside which there is a storage node then; 0: no limit
  runtime::ModelledMemory* memory = nullptr;  ///< which copies of `link` share with modelled kernels; null: they hinder nobody. Outlives the world
  base::EventLoop* loop = nullptr;  ///< in which copies end, and which outlives the world; null: one of its own, which drives the world
};

/// One thread, manual time, everything in an order drawn from the seed.
runtime::World make_test_world(const TestWorldOptions& options, WorldResources& resources);

}  // namespace tandem
