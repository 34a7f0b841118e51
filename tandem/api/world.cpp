// tandem/api/world.cpp: assembles the real and the test world.
#include "tandem/api/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "tandem/base/cpu_quota.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/base/owned_file.hpp"
#include "tandem/base/thread_driver.hpp"
#include "tandem/clock/loop_clock.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/runtime/device/plain_device.hpp"
#include "tandem/runtime/exec/recorded_order.hpp"
#include "tandem/runtime/memory/numa_memory.hpp"
#include "tandem/runtime/memory/spill_file.hpp"
#include "tandem/runtime/worker/measure_links.hpp"
#include "tandem/runtime/worker/modelled_links.hpp"

namespace tandem {

namespace {

std::unique_ptr<runtime::Policy> make_policy(const std::string& name, const runtime::PolicyRegistry& policies) {
  if (auto policy = policies.make(name)) return policy;
  std::string known;
  for (const std::string& other : policies.names()) known += (known.empty() ? "" : ", ") + other;
  throw StartError(fmt::format("there is no scheduling policy '{}'; known are: {}", name, known));
}

/// Copies at a later date of the loop.
class LateCopier final : public runtime::Copier {
 public:
  LateCopier(base::EventLoop& loop, std::int64_t most_ns) : loop_(loop), most_ns_(most_ns) {}
  runtime::CopyState start(const runtime::CopyRequest& request, runtime::CopyEnded ended) override {
    const auto delay_ns = static_cast<std::int64_t>(loop_.random() % (static_cast<std::uint64_t>(most_ns_) + 1));
    if (delay_ns == 0) {
      runtime::copy_matrix(request);
      return runtime::CopyState::done;
    }
    loop_.at(loop_.now_ns() + delay_ns, [request, ended, works = works_] {
      if (!*works) return;
      runtime::copy_matrix(request);
      ended(nullptr);
    });
    return runtime::CopyState::posted;
  }
  void finish() noexcept override { *works_ = false; }

 private:
  base::EventLoop& loop_;
  std::shared_ptr<bool> works_ = std::make_shared<bool>(true);  ///< the loop may outlive the memory
  std::int64_t most_ns_;
};

/// All cores except the one kept for the progress thread, if another is left; those near the calling thread's NUMA node
/// first, if it has one.
std::vector<base::CoreId> cores_for_workers(const base::Topology& topology, const base::Config& config) {
  const int progress_pu = config.get_bool("reserve_core") ? comm::progress_core(config).value_or(-1) : -1;
  std::vector<base::CoreId> cores;
  for (std::uint32_t core = 0; core < topology.cores().size(); ++core) {
    const auto& pus = topology.cores()[core].pus;
    const bool reserved =
        progress_pu >= 0 && std::count(pus.begin(), pus.end(), static_cast<unsigned>(progress_pu)) > 0;
    if (!reserved || topology.cores().size() == 1) cores.emplace_back(core);
  }
  if (const std::int64_t home = config.get_int("caller.numa"); home >= 0) {
    const auto near = cores_near(topology, static_cast<std::size_t>(home));
    std::ranges::stable_partition(cores, [&near](base::CoreId core) { return std::ranges::count(near, core) > 0; });
  }
  return cores;
}

/// Sets a budget for main memory, of which each NUMA node that is a memory gets an equal part, and a file for data that
/// does not fit.
void limit_main_memory(runtime::World& world, std::size_t bytes, const base::Config& config) {
  std::string folder = config.get_string("spill");
  if (folder.empty()) {
    const char* const named = std::getenv("TMPDIR");
    folder = named != nullptr && *named != '\0' ? named : "/var/tmp";
  }
  auto file = runtime::make_spill_file(folder);
  if (!file.ok()) throw StartError(file.error().message);
  std::vector<runtime::MachineNode*> parts;
  for (runtime::MachineNode& node : world.machine.nodes)
    if (node.kind == runtime::NodeKind::main || node.kind == runtime::NodeKind::numa) parts.push_back(&node);
  for (runtime::MachineNode* const part : parts) part->budget = std::max<std::size_t>(bytes / parts.size(), 1);
  auto [node, copier] = std::move(file).value();
  std::string name = node->name();
  world.add_memory({.kind = runtime::NodeKind::storage, .name = std::move(name)}, std::move(node), std::move(copier));
}

/// Makes a memory for each NUMA node with a worker, except the node of worker 0, which is main memory.
void divide_main_memory(runtime::World& world, const base::Topology& topology) {
  runtime::Machine& machine = world.machine;
  std::map<unsigned, runtime::NodeIndex> node_of{{machine.workers[0].numa_node, 0}};
  for (runtime::MachineWorker& worker : machine.workers) {
    const unsigned place = worker.numa_node;
    if (!node_of.contains(place)) {
      auto memory = runtime::make_numa_memory(topology, place);
      if (!memory.ok()) throw StartError(fmt::format("option numa: {}; leave it out", memory.error().message));
      std::string name = memory.value()->name();
      node_of[place] = world.add_memory({.kind = runtime::NodeKind::numa, .name = std::move(name), .numa_node = place},
                                        std::move(memory).value(), runtime::make_processor_copier());
    }
    worker.node = node_of[place];
  }
  if (node_of.size() == 1) world.log->info("option numa changes nothing: all workers are near one NUMA node");
}

}  // namespace

std::vector<WorkerPlacement> plan_workers(const base::Topology& topology, std::optional<double> cpu_quota,
                                          const base::Config& config, const RankShare& share) {
  const std::vector<base::CoreId> cores = cores_for_workers(topology, config);
  const std::size_t core_count = cores.size();
  auto count = static_cast<std::size_t>(config.get_int("workers"));
  if (count == 0) {
    count = share.has_own_cores ? core_count : core_count / share.ranks_here;
    if (cpu_quota) count = std::min(count, static_cast<std::size_t>(std::ceil(*cpu_quota)) / share.ranks_here);
    count = std::max<std::size_t>(1, count);
  }
  const bool bound = config.get_bool("bind") && count <= core_count && share.has_own_cores;
  std::vector<WorkerPlacement> plan;
  for (std::size_t worker = 0; worker < count; ++worker) {
    const bool is_caller = worker == 0 && config.get_bool("caller");
    plan.push_back({worker, {}, is_caller});
    const bool roams = is_caller && config.get_int("caller.numa") < 0;
    if (bound && !roams) plan.back().core = cores[worker];
  }
  return plan;
}

std::vector<base::CoreId> cores_near(const base::Topology& topology, std::size_t numa_place) {
  std::vector<base::CoreId> near;
  for (std::uint32_t core = 0; core < topology.cores().size(); ++core)
    if (topology.numa_place_of(base::CoreId(core)) == numa_place) near.emplace_back(core);
  if (near.empty())
    throw StartError(fmt::format("option caller.numa: no core of this rank is near NUMA node {}", numa_place));
  return near;
}

base::CoreId core_of(const WorkerPlacement& placement, const base::Topology& topology) {
  return placement.core.value_or(base::CoreId(static_cast<std::uint32_t>(placement.worker % topology.cores().size())));
}

runtime::World begin_world(const base::Config& config, const WorldResources& resources) {
  runtime::World world;
  const std::string& sched = config.get_string("sched");
  world.policy = make_policy(sched == kAutomaticPolicy ? "lws" : sched, resources.policies);
  world.clock = resources.clock.get();
  world.log = resources.log.get();
  world.caller_works = config.get_bool("caller");
  return world;
}

runtime::World make_real_world(const base::Config& config, WorldResources& resources) {
  if (resources.clock == nullptr) resources.clock = clock::best_clock();
  if (resources.topology == nullptr) {
    auto topology = base::Topology::discover();
    if (!topology.ok()) throw UsageError(topology.error().message);
    resources.topology = std::make_unique<base::Topology>(std::move(topology).value());
  }
  const std::vector<WorkerPlacement> plan =
      plan_workers(*resources.topology, base::cpu_quota(), config, {resources.ranks_here, resources.has_own_cores});
  if (plan.size() > resources.topology->cores().size())
    resources.log->info("{} workers share {} cores", plan.size(), resources.topology->cores().size());

  runtime::World world = begin_world(config, resources);
  const auto bind = [&resources](int core) {
    const auto bound = resources.topology->bind_this_thread(base::CoreId(static_cast<std::uint32_t>(core)));
    if (!bound.ok()) resources.log->warn("a worker runs unbound: {}", bound.error().message);
  };
  world.driver = std::make_unique<base::ThreadDriver>([&resources] { return resources.clock->now_ns(); }, bind,
                                                      static_cast<std::size_t>(config.get_bytes("stack")));
  runtime::Machine& machine = world.machine;
  machine.distance.resize(plan.size());
  for (std::size_t a = 0; a < plan.size(); ++a) {
    machine.workers.push_back(
        {DeviceKind::cpu, 0, plan[a].core ? static_cast<int>(plan[a].core->value()) : -1,
         static_cast<unsigned>(resources.topology->numa_place_of(core_of(plan[a], *resources.topology)))});
    for (std::size_t b = 0; b < plan.size(); ++b)
      machine.distance[a].push_back(
          resources.topology->distance(core_of(plan[a], *resources.topology), core_of(plan[b], *resources.topology)));
  }
  if (config.get_bool("numa")) divide_main_memory(world, *resources.topology);
  if (const std::int64_t bytes = config.get_bytes("memory"); bytes != 0)
    limit_main_memory(world, static_cast<std::size_t>(bytes), config);
  world.numa_node_of = [&resources](const void* memory, std::size_t bytes) {
    return resources.topology->numa_place_of(memory, bytes);
  };
  return world;
}

void settle_policy(runtime::World& world, base::Config& config, const WorldResources& resources) {
  const bool is_recorded = !config.get_string("sched.recorded").empty();
  if (config.get_string("sched") != kAutomaticPolicy && !is_recorded) return;
  const char* const name = world.machine.is_mixed() && !is_recorded ? "plan" : "lws";
  if (world.policy->name() != name) world.policy = make_policy(name, resources.policies);
  static_cast<void>(config.set("sched", name, config.origin("sched")));
}

std::shared_ptr<const runtime::RecordedSchedule> find_schedule(const base::Config& config, std::uint32_t rank,
                                                               std::uint32_t ranks, std::size_t workers) {
  constexpr std::size_t most_bytes = std::size_t{4} << 30;
  const std::string name = config.get_string("sched.recorded");
  if (name.empty()) return nullptr;
  const auto refuse = [](const std::string& why) -> StartError { return StartError("option sched.recorded: " + why); };
  const auto file = base::OwnedFile::open(name, base::Owners::anyone);
  if (!file) throw refuse(file.error().message);
  const auto text = file.value().text(most_bytes);
  if (!text) throw refuse(text.error().message);
  auto schedule = runtime::RecordedSchedule::parse(text.value(), rank, ranks, name);
  if (!schedule) throw refuse(schedule.error().message);
  if (schedule.value().workers != workers)
    throw refuse(fmt::format("{}: rank {} has {} workers there, and {} here", name, rank, schedule.value().workers,
                             workers));
  return std::make_shared<const runtime::RecordedSchedule>(std::move(schedule).value());
}

void measure_links_for_policy(runtime::World& world, base::Log& log) {
  if (world.policy->placing() == nullptr && world.policy->pulling() == nullptr) return;
  runtime::measure_links(world);
  for (const runtime::MachineLink& link : world.machine.links)
    if (link.source == runtime::LinkSource::measured)
      log.info("copies from {} to {}: {:.1f} GB/s and {:.0f} us", world.machine.nodes[link.from].name,
               world.machine.nodes[link.to].name, link.bytes_per_ns, static_cast<double>(link.latency_ns) / 1e3);
}

runtime::World make_test_world(const TestWorldOptions& options, WorldResources& resources) {
  auto own_loop = std::make_unique<base::EventLoop>(options.seed);
  base::EventLoop* const loop = options.loop != nullptr ? options.loop : own_loop.get();
  resources.loop = loop;
  resources.clock = std::make_unique<clock::LoopClock>(*loop);
  if (resources.log == nullptr) resources.log = std::make_unique<base::Log>(base::LogLevel::error);
  runtime::World world;
  world.policy = make_policy(options.sched, resources.policies);
  world.clock = resources.clock.get();
  world.log = resources.log.get();
  world.add_cpu_workers(options.workers);
  const auto links =
      std::make_shared<runtime::ModelledLinks>(*loop, runtime::ModelledLinks::Options{.memory = options.memory});
  const auto add_memory = [&](runtime::NodeKind kind, std::size_t budget) {
    std::string name = fmt::format("test memory {}", world.machine.nodes.size());
    auto memory = runtime::make_modelled_node(name, options.device_messages);
    std::unique_ptr<runtime::Copier> copier;
    if (options.link)
      copier = runtime::ModelledLinks::make_copier(links);
    else
      copier = std::make_unique<LateCopier>(*loop, options.copy_ns);
    const runtime::NodeIndex node = world.add_memory({.kind = kind, .name = std::move(name), .budget = budget},
                                                     std::move(memory), std::move(copier));
    links->add_port(node);
    for (runtime::NodeIndex other = 0; options.link && other < node; ++other)
      for (const auto& [from, to] : {std::pair(other, node), std::pair(node, other)}) {
        runtime::MachineLink link = *options.link;
        link.from = from;
        link.to = to;
        link.source = runtime::LinkSource::given;
        world.machine.set_link(link);
        links->add(link);
      }
    return node;
  };
  for (unsigned i = 0; i < options.devices; ++i) {
    world.machine.workers.push_back({DeviceKind::user, add_memory(runtime::NodeKind::device, options.device_bytes)});
    if (options.device_depth > 1)
      world.set_device(options.workers + i, std::make_unique<runtime::PlainDevice>(options.device_depth));
  }
  world.machine.nodes[0].budget = options.main_bytes;
  if (options.main_bytes != 0) add_memory(runtime::NodeKind::storage, 0);
  world.driver = std::move(own_loop);
  return world;
}

}  // namespace tandem
