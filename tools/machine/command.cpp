// tools/machine/command.cpp: `tandem machine`: what was found on this machine, and how workers would be bound to it.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include <fmt/core.h>
#include <fmt/format.h>

#include "tandem/api/machine_option.hpp"
#include "tandem/api/memory_contention.hpp"
#include "tandem/api/message_place.hpp"
#include "tandem/api/model_folder.hpp"
#include "tandem/api/near_network.hpp"
#include "tandem/api/world.hpp"
#include "tandem/base/cpu_quota.hpp"
#include "tandem/base/exceptions.hpp"
#include "tandem/base/host.hpp"
#include "tandem/base/topology.hpp"
#include "tandem/base/units.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/comm/transport/load_module.hpp"
#include "tandem/comm/transport/rdma.hpp"
#include "tandem/runtime/device/cuda/load_cuda.hpp"
#include "tandem/runtime/device/opencl/load_opencl.hpp"
#include "tandem/runtime/machine/machine_file.hpp"
#include "tools/machine/doctor.hpp"
#include "tools/counted.hpp"
#include "tools/json/json_report.hpp"
#include "tools/machine/links.hpp"
#include "tools/machine/picture.hpp"
#include "tools/out_file.hpp"
#include "tools/subcommands.hpp"
#include "tools/version.hpp"

namespace tandem::tools {
namespace {

/// The transports that ranks would use here without option comm.transports, most preferred first.
std::vector<std::string> transports() {
  std::vector<std::string> names = comm::internal::automatic_transports(comm::internal::active_rdma_ports());
  const auto ucx = std::find(names.begin(), names.end(), "ucx");
  if (ucx != names.end() && !comm::internal::load_module({.transport = "ucx", .package = "libucx-dev"}, "").ok())
    names.erase(ucx);
  return names;
}

/// The OpenCL module; null: OpenCL cannot be used.
const runtime::OpenClModule* opencl() {
  const auto module = runtime::load_opencl();
  return module.ok() ? module.value() : nullptr;
}

void print_opencl() {
  const runtime::OpenClModule* const module = opencl();
  if (module == nullptr) return fmt::print("OpenCL       not built, or not found\n");
  const std::vector<runtime::OpenClFacts> devices = module->find();
  if (devices.empty()) fmt::print("OpenCL       no device\n");
  for (std::size_t i = 0; i < devices.size(); ++i)
    fmt::print("OpenCL {}     {}{}, {}, {} compute units, by {}\n", i, devices[i].name,
               devices[i].is_processor ? " (the processor)" : "", readable_bytes(devices[i].memory_bytes),
               devices[i].units, devices[i].platform);
}

Json opencl_json() {
  Json devices = Json::array();
  if (const runtime::OpenClModule* const module = opencl())
    for (const runtime::OpenClFacts& device : module->find())
      devices.push_back({{"name", device.name},
                         {"platform", device.platform},
                         {"version", device.version},
                         {"memory_bytes", device.memory_bytes},
                         {"compute_units", device.units},
                         {"is_processor", device.is_processor}});
  return devices;
}

/// What CUDA reports, by the libraries that the command's options name.
base::Result<std::vector<runtime::CudaFacts>> cuda(const base::Config& config) {
  const auto module = runtime::load_cuda();
  if (!module.ok()) return base::Error{base::ErrorCode::unsupported, "not built, or not found"};
  return module.value()->find(config.get_string("cuda.libraries"));
}

void print_cuda(const base::Config& config) {
  const auto devices = cuda(config);
  if (!devices.ok()) return fmt::print("CUDA         {}\n", devices.error().message);
  if (devices.value().empty()) fmt::print("CUDA         no device\n");
  else if (const std::int64_t bound = config.get_bytes("cuda.page_locked"); bound != 0)
    fmt::print("page-locked  up to {} of main memory for copies from and to CUDA devices, with option cuda\n",
               readable_bytes(static_cast<std::size_t>(bound)));
  for (std::size_t i = 0; i < devices.value().size(); ++i) {
    const runtime::CudaFacts& device = devices.value()[i];
    fmt::print("CUDA {}       {}, {}, {} multiprocessors, compute capability {}.{}\n", i, device.name,
               readable_bytes(device.memory_bytes), device.multiprocessors, device.major, device.minor);
  }
}

Json cuda_json(const base::Config& config) {
  Json devices = Json::array();
  if (const auto found = cuda(config); found.ok())
    for (const runtime::CudaFacts& device : found.value())
      devices.push_back({{"name", device.name},
                         {"memory_bytes", device.memory_bytes},
                         {"multiprocessors", device.multiprocessors},
                         {"compute_capability", fmt::format("{}.{}", device.major, device.minor)}});
  return devices;
}

std::string core_list(const std::vector<base::CoreId>& cores) {
  std::vector<unsigned> numbers;
  for (const base::CoreId core : cores) numbers.push_back(core.value());
  return fmt::format("{} {}", numbers.size() == 1 ? "core" : "cores", fmt::join(numbers, " "));
}

/// "2 of 1MiB for 1 core each". Caches of one level are alike on most machines; where they are not, each size has its
/// line.
void print_caches(const base::Topology& topology) {
  struct Kind {
    base::Cache example;
    std::size_t count;
  };
  std::vector<Kind> kinds;
  for (const base::Cache& cache : topology.caches()) {
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& kind) {
      return kind.example.level == cache.level && kind.example.bytes == cache.bytes &&
             kind.example.cores.size() == cache.cores.size();
    });
    if (same != kinds.end()) ++same->count;
    else kinds.push_back({cache, 1});
  }
  for (const Kind& kind : kinds) {
    const std::size_t sharers = kind.example.cores.size();
    fmt::print("L{} caches    {} of {}, each for {} {}\n", kind.example.level, kind.count,
               readable_bytes(kind.example.bytes), sharers, sharers == 1 ? "core" : "cores");
  }
}

/// The NUMA place where a worker works, with option `numa`.
std::string memory_of(const WorkerPlacement& placement, const std::vector<WorkerPlacement>& workers,
                      const base::Topology& topology) {
  const std::size_t place = topology.numa_place_of(core_of(placement, topology));
  const bool is_main = place == topology.numa_place_of(core_of(workers.front(), topology));
  return fmt::format("{}NUMA node {}", is_main ? "main memory, " : "", topology.numa_nodes()[place].os_index);
}

/// Calls `visit(number, worker)` for the workers of devices.
template <class Visit>
void for_each_device_worker(const runtime::Machine& machine, const Visit& visit) {
  for (std::size_t i = 0; i < machine.workers.size(); ++i)
    if (machine.workers[i].kind != DeviceKind::cpu) visit(i, machine.workers[i]);
}

void print_table(const base::Topology& topology, std::optional<double> quota,
                 const std::vector<WorkerPlacement>& workers, const std::string& messages,
                 const std::optional<LinkView>& links, const base::Config& config) {
  fmt::print("processor    {}\n", topology.cpu_model().empty() ? "unknown" : topology.cpu_model());
  fmt::print("packages     {}\n", topology.package_count());
  fmt::print("cores        {} that this process may use, with {} hardware threads\n", topology.cores().size(),
             topology.pu_count());
  if (quota) fmt::print("CPU quota    {:.2f} processors' worth of time, by the cgroup\n", *quota);
  for (const base::NumaNode& node : topology.numa_nodes())
    fmt::print("NUMA node {}  {}, {}\n", node.os_index, readable_bytes(node.bytes), core_list(node.cores));
  print_caches(topology);
  for (const Finding& finding : check_networks("/")) fmt::print("{:<12} {}\n", finding.subject, finding.found);
  for (const Finding& finding : check_energy(config)) fmt::print("{:<12} {}\n", finding.subject, finding.found);
  fmt::print("transports   {}\n", fmt::join(transports(), ", "));
  if (!messages.empty()) fmt::print("messages     {}\n", messages);
  print_opencl();
  print_cuda(config);
  fmt::print("\ncore  package  NUMA node  hardware threads\n");
  for (const base::Core& core : topology.cores())
    fmt::print("{:>4}  {:>7}  {:>9}  {}\n", core.id.value(), core.package, core.numa_node, fmt::join(core.pus, " "));
  const auto row = [divides = config.get_bool("numa")](std::string_view worker, std::string_view place,
                                                       const std::string& memory) {
    if (divides) fmt::print("{:>6}  {:<30}  {}\n", worker, place, memory);
    else fmt::print("{:>6}  {}\n", worker, place);
  };
  fmt::print("\n");
  row("worker", "runs on", "works in");
  for (const WorkerPlacement& placement : workers) {
    const std::string place = placement.core ? fmt::format("core {}", placement.core->value()) : "any core";
    row(std::to_string(placement.worker), placement.is_caller ? "the calling thread, not bound" : place,
        memory_of(placement, workers, topology));
  }
  if (!links) return;
  for_each_device_worker(links->machine, [&](std::size_t number, const runtime::MachineWorker& worker) {
    const std::string place = worker.core >= 0 ? fmt::format("core {}", worker.core) : "any core";
    fmt::print("{:>6}  {}, for a device that works in {}\n", number, place, links->machine.nodes[worker.node].name);
  });
}

void print_json(const base::Topology& topology, std::optional<double> quota, const std::vector<WorkerPlacement>& placed,
                const std::optional<LinkView>& links, const base::Config& config) {
  Json machine = machine_json(topology);
  machine["cpu_quota"] = quota ? Json(*quota) : Json(nullptr);
  machine["networks"] = Json::array();
  for (const Finding& finding : check_networks("/"))
    machine["networks"].push_back(
        {{"kind", finding.subject}, {"found", finding.found}, {"usable", finding.verdict == Verdict::right}});
  machine["energy"] = Json::array();
  for (const Finding& finding : check_energy(config))
    machine["energy"].push_back(
        {{"kind", finding.subject}, {"found", finding.found}, {"usable", finding.verdict == Verdict::right}});
  machine["transports"] = transports();
  machine["opencl"] = opencl_json();
  machine["cuda"] = cuda_json(config);
  Json workers = Json::array();
  for (const WorkerPlacement& placement : placed)
    workers.push_back({{"worker", placement.worker},
                       {"core", placement.core ? Json(placement.core->value()) : Json(nullptr)},
                       {"calling_thread", placement.is_caller},
                       {"memory", config.get_bool("numa") ? memory_of(placement, placed, topology) : "main memory"}});
  if (links)
    for_each_device_worker(links->machine, [&](std::size_t number, const runtime::MachineWorker& worker) {
      workers.push_back({{"worker", number},
                         {"core", worker.core >= 0 ? Json(worker.core) : Json(nullptr)},
                         {"calling_thread", false},
                         {"memory", links->machine.nodes[worker.node].name}});
    });
  machine["workers"] = workers;
  if (links) add_links_json(*links, machine);
  print({{"tandem", version}, {"commit", commit}, {"machine", machine}});
}

MachineView view_of(const base::Topology& topology, const std::vector<WorkerPlacement>& workers,
                    const base::Config& config) {
  MachineView view{.topology = topology, .workers = workers};
  if (const runtime::OpenClModule* const module = opencl())
    for (const runtime::OpenClFacts& device : module->find())
      view.devices.push_back({fmt::format("OpenCL {}", view.devices.size()), device.name, device.memory_bytes});
  if (const auto found = cuda(config); found.ok())
    for (std::size_t i = 0; i < found.value().size(); ++i)
      view.devices.push_back({fmt::format("CUDA {}", i), found.value()[i].name, found.value()[i].memory_bytes});
  for (const Finding& finding : check_networks("/"))
    if (finding.verdict == Verdict::right) view.networks.push_back(finding.found);
  return view;
}

base::Result<void> write_svg(const MachineView& machine, const std::string& path) {
  auto file = OutFile::create(path);
  if (!file) return file.error();
  file.value().print("{}", machine_svg(machine));
  return file.value().close();
}

struct MachineOptions {
  bool json = false;
  bool tree = false;
  bool links = false;
  std::string svg;
  std::string save;
};

/// Explains where a rank that has this host for itself would serve messages, with option comm.progress_core=model; else
/// empty. Sets that core in `config`.
std::string place_of_messages(base::Config& config, const base::Topology& topology, std::optional<double> quota,
                              base::Log& log) {
  if (comm::progress_core(config)) return {};
  const auto machine =
      find_contention_machine(config, base::process_environment(), machine_name(topology.cpu_model()), log);
  const auto host = base::Topology::discover_host();
  const MessageChoice choice = choose_messages(config, {.own = topology,
                                                        .host = host ? host.value() : topology,
                                                        .cpu_quota = quota,
                                                        .network_node = node_of_network(),
                                                        .machine = machine ? &machine->stored : nullptr});
  static_cast<void>(config.set("comm.progress_core", choice.progress_pu ? std::to_string(*choice.progress_pu) : "-1"));
  return choice.reason;
}

base::Result<void> show_machine(const MachineOptions& options, const ToolContext& context) {
  const auto topology = base::Topology::discover();
  if (!topology) return topology.error();
  const auto quota = base::cpu_quota();
  base::Config config = context.config;
  const std::string messages = place_of_messages(config, topology.value(), quota, context.log);
  const auto workers = plan_workers(topology.value(), quota, config);
  // Among several ranks, one writes for all.
  std::optional<comm::Job> job;
  if (options.links || !options.save.empty()) job = find_job(context.config, context.log);
  const bool writes = !job || job->rank == comm::Rank(0);
  std::optional<LinkView> links;
  const bool needs_links = options.links || !options.save.empty() || !context.config.get_string("machine").empty();
  if (needs_links || has_more_memories(context.config)) {
    try {
      links = find_links(context.config, context.log, options.links, std::move(job));
    } catch (const StartError& error) {
      if (needs_links) throw;
      context.log.warn("{}", error.what());  // the rest is still useful where programs would not start
    }
  }
  if (!writes) return {};
  if (options.json) {
    print_json(topology.value(), quota, workers, links, context.config);
  } else {
    if (options.tree) fmt::print("{}", machine_tree(view_of(topology.value(), workers, context.config)));
    else if (options.svg.empty()) print_table(topology.value(), quota, workers, messages, links, context.config);
    if (links) fmt::print("{}", links_text(*links));
  }
  if (!options.svg.empty())
    if (auto drawn = write_svg(view_of(topology.value(), workers, context.config), options.svg); !drawn) return drawn;
  if (options.save.empty()) return {};
  return runtime::write_machine(options.save, links->machine, found_on(topology.value()));
}

}  // namespace

void add_machine(Subcommand app, ToolContext& context) {
  Subcommand command =
      app.add_subcommand("machine", "Show the processor, the memory and the caches, and where workers would run");
  auto options = std::make_shared<MachineOptions>();
  command.add_flag("--json", options->json, "Print a JSON object");
  command.add_flag("--tree", options->tree,
                   "Print a tree: which parts of the machine belong to which, and the workers bound to its cores");
  command.add_option("--svg", options->svg, "Draw the tree into this file");
  command.add_flag("--links", options->links,
                   "Measure how fast copies between memories are, each link alone and all at once, and, on several "
                   "ranks, messages, alone and beside "
                   "copies; up to half a minute for each");
  command.add_option("--save", options->save, "Write workers, memories and links to this file, for option machine of programs").type_name("FILE");
  command.callback([options, &context] {
    const auto shown = show_machine(*options, context);
    if (shown) return;
    context.log.error("{}", shown.error().message);
    context.exit_status = 1;
  });
}

}  // namespace tandem::tools
