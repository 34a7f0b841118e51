// tandem/api/runtime_start.cpp: how the runtime starts and ends: options, the job, the world, the trace.
#include "tandem/api/runtime.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/api/configure.hpp"
#include "tandem/api/energy_counters.hpp"
#include "tandem/api/exit_status.hpp"
#include "tandem/api/machine_option.hpp"
#include "tandem/api/memory_contention.hpp"
#include "tandem/api/message_place.hpp"
#include "tandem/api/near_network.hpp"
#include "tandem/api/numa_balancing.hpp"
#include "tandem/api/program_world.hpp"
#include "tandem/api/rank_cores.hpp"
#include "tandem/api/report.hpp"
#include "tandem/api/start_error.hpp"
#include "tandem/api/trace.hpp"
#include "tandem/api/world.hpp"
#include "tandem/base/blas_threads.hpp"
#include "tandem/base/cpu_quota.hpp"
#include "tandem/base/hardware_counters.hpp"
#include "tandem/base/number_of.hpp"
#include "tandem/base/standard_streams.hpp"
#include "tandem/clock/loop_clock.hpp"
#include "tandem/comm/bootstrap/join.hpp"
#include "tandem/comm/bootstrap/variables.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/runtime/memory/numa_memory.hpp"
#include "tandem/runtime/runtime_core.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/virtual_place.hpp"
#include "tandem/runtime/worker/worker_team.hpp"
#include "tandem/sim_rank/process_place.hpp"

namespace tandem {

namespace {

/// The options of a runtime, made once: a simulation has thousands of runtimes.
const base::Registry& known_options() {
  static const base::Registry registry = [] {
    base::Registry options;
    register_options(options);
    return options;
  }();
  return registry;
}

base::Config load_config(int* argc, char** argv, const Options& options) {
  base::hold_standard_streams();
  internal::end_cleanly_on_start_errors();
  auto sources = base::ConfigSources::of_process(argc != nullptr ? *argc : 0, argv);
  sources.reserved_variables = comm::job_variables();  // the process may be a rank of `tandem run`, or of a simulation
  for (const char* const name : sim::simulation_variables) sources.reserved_variables.emplace_back(name);
  auto loaded = base::Config::load(known_options(), sources);
  if (!loaded.ok()) throw StartError(loaded.error().message);
  base::Config config = std::move(loaded).value();
  if (argc != nullptr) *argc = base::remove_arguments(*argc, argv, config.consumed_arguments());
  const auto set = [&](const std::string& name, const std::string& value) {
    const auto done = config.set(name, value);
    if (!done.ok()) throw StartError(done.error().message);
  };
  if (options.workers) set("workers", std::to_string(*options.workers));
  if (options.sched) set("sched", *options.sched);
  for (const auto& [name, value] : options.more) set(name, value);
  return config;
}

std::unique_ptr<WorldResources> make_resources(const base::Config& config, const Options& options) {
  auto resources = std::make_unique<WorldResources>();
  for (const auto& [name, make] : options.policies) resources->policies.add(name, make);
  const std::string& level = config.get_string("log");
  resources->log = std::make_unique<base::Log>(level == "error"  ? base::LogLevel::error
                                            : level == "info"  ? base::LogLevel::info
                                            : level == "debug" ? base::LogLevel::debug
                                                               : base::LogLevel::warn);
  return resources;
}

/// Joins a job. Returns this process's place among its ranks; null: it is alone.
std::optional<comm::Job> join(const base::Config& config, WorldResources& resources) {
  if (config.get_string("ranks") == "alone") return {};
  auto job = comm::join_job({.environment = base::process_environment(), .log = *resources.log,
                             .timeout_ns = config.get_duration_ns("comm.start_timeout")});
  if (!job.ok()) throw StartError(job.error().message);
  resources.ranks_here = job.value().ranks_here;
  if (job.value().size == 1) return {};
  return std::move(job).value();
}

std::unique_ptr<trace::Session> open_trace(trace::SessionOptions options, const std::filesystem::path& folder,
                                           WorldResources& resources) {
  if (!folder.empty()) options.folder = folder;
  auto session = trace::Session::open(options, *resources.clock, *resources.log, resources.loop);
  if (!session.ok()) throw StartError(session.error().message);
  return std::move(session).value();
}

/// The trace of a rank, which begins now if options say so. `config` and `resources` outlive it.
std::unique_ptr<Trace> make_trace(const base::Config& config, const TracePlace& place, WorldResources& resources) {
  const auto open = [&config, &resources, place](const std::filesystem::path& folder) {
    return open_trace(trace_options(config, place, resources.topology.get()), folder, resources);
  };
  const bool begins = !config.get_string("trace").empty() || !config.get_string("report").empty();
  return std::make_unique<Trace>(begins ? open({}) : nullptr, open);
}

void warn_of_numa_balancing(const WorldResources& resources) {
  const std::string warning = internal::warning_of_numa_balancing(resources.topology->numa_nodes().size());
  if (!warning.empty()) resources.log->warn("{}", warning);
}

std::unique_ptr<comm::Endpoint> open_endpoint(comm::Job job, const comm::EndpointOptions& options,
                                              const base::Config& config, const WorldResources& resources) {
  std::optional<base::ScopedAffinity> near_card;  // for its memory, and its thread, which inherits this
  if (config.get_bool("bind"))
    if (const auto pus = pus_near_network(*resources.topology); !pus.empty()) near_card.emplace(pus);
  auto opened = comm::Endpoint::open(std::move(job), options, *resources.log);
  if (!opened.ok()) throw StartError(opened.error().message);
  return std::move(opened).value();
}

/// Number of CPU workers in the memory that has most.
unsigned workers_of_largest_memory(const runtime::Machine& machine) {
  std::vector<unsigned> counts(machine.nodes.size());
  for (const runtime::MachineWorker& worker : machine.workers)
    if (worker.kind == DeviceKind::cpu) ++counts[worker.node];
  return *std::ranges::max_element(counts);
}

/// Index in numa_nodes() of memory for what messages bring; sets a number for option comm.progress_core.
std::optional<std::size_t> find_message_memory(base::Config& config, const std::optional<NamedMachine>& machine,
                                               const WorldResources& resources) {
  const base::Topology& own = *resources.topology;
  MessageHost host{.own = own, .host = own, .share = {resources.ranks_here, resources.has_own_cores}};
  if (comm::progress_core(config)) return place_messages(config, host, *resources.log);
  const auto all = base::Topology::discover_host();
  return place_messages(config,
                        {.own = own,
                         .host = all.ok() ? all.value() : own,
                         .share = host.share,
                         .cpu_quota = base::cpu_quota(),
                         .network_node = node_of_network(),
                         .machine = machine ? &machine->stored : nullptr},
                        *resources.log);
}

/// Sets the memory of messages, before there is data.
void place_message_memory(runtime::RuntimeCore& core, std::size_t numa_place, const base::Config& config,
                          const WorldResources& resources) {
  const auto leave = [&](const std::string& why) {
    resources.log->info("what messages bring lies where the system puts it: {}", why);
  };
  if (config.get_bool("numa")) return leave("with option numa, main memory is that of worker 0's NUMA node");
  if (core.world().page_locked != nullptr) return leave("it is page-locked, for devices");
  auto memory = runtime::make_numa_memory(*resources.topology, numa_place);
  if (!memory.ok())
    return resources.log->warn("what messages bring lies where the system puts it: {}", memory.error().message);
  core.memory().set_message_memory(std::move(memory).value());
}

}  // namespace

Runtime::Runtime(const Options& options)
    : config_(std::make_unique<base::Config>(load_config(nullptr, nullptr, options))),
      resources_(make_resources(*config_, options)) {
  start(options);
}

Runtime::Runtime(int& argc, char** argv, const Options& options)
    : config_(std::make_unique<base::Config>(load_config(&argc, argv, options))),
      resources_(make_resources(*config_, options)) {
  start(options);
}

Runtime::Runtime(std::unique_ptr<WorldResources> resources, runtime::World world, const runtime::CoreOptions& options)
    : resources_(std::move(resources)) {
  config_ = std::make_unique<base::Config>(known_options());
  core_ = std::make_unique<runtime::RuntimeCore>(std::move(world), options);
  flow_ = std::make_unique<dist::ProgramFlow>(*core_);
  trace_ = std::make_unique<Trace>(nullptr, [this](const std::filesystem::path& folder) {
    return open_trace(trace_options(*config_, {.rank = rank(), .size = size()}, nullptr), folder, *resources_);
  });
  connect_trace();
}

Runtime::Runtime(std::unique_ptr<WorldResources> resources, runtime::World world, const runtime::CoreOptions& options,
                 std::unique_ptr<comm::Endpoint> endpoint, const dist::FlowOptions& flow_options,
                 std::unique_ptr<trace::Session> trace)
    : Runtime(std::move(resources), std::move(world), options) {
  if (trace != nullptr) {
    endpoint->trace_to(*trace);
    trace_->session_ = std::move(trace);
    connect_trace();
  }
  join_ranks(std::move(endpoint), flow_options);
}

void Runtime::join_ranks(std::unique_ptr<comm::Endpoint> endpoint, const dist::FlowOptions& options) {
  auto several = std::make_unique<dist::Flow>(*core_, std::move(endpoint), options);
  several_ = several.get();
  flow_ = std::move(several);
}

/// Ends the trace when no part emits events any more, and before the core, whose driver runs the flusher, is destroyed.
Runtime::~Runtime() {
  if (core_->loop().is_in_child()) {
    leave_to_parent();
    return;
  }
  const unsigned ranks = size(), own_rank = rank();
  bool is_well = flow_->end();
  several_ = nullptr;
  flow_ = std::make_unique<dist::ProgramFlow>(*core_);  // for kernels that are left
  core_->shut_down();
  if (core_->has_lost_reports()) is_well = false;
  if (!is_well && exit_status_ != nullptr) exit_status_->fail();
  if (resources_->models != nullptr) resources_->models->save(core_->workers().measured_powers(), *resources_->log);
  std::filesystem::path traced;  // folder of the trace, for a report
  if (trace_->session() != nullptr && !config_->get_string("report").empty())
    traced = trace_->session()->rank_folder().parent_path();
  trace_->close();
  if (!traced.empty()) make_report(*config_, traced, ranks, own_rank, *resources_->log);
}

/// Leaves all parts as they are in a child by fork(): their threads are missing, their locks may be held, and their
/// files and shared memory are the parent's.
void Runtime::leave_to_parent() noexcept {
  (void)company_.release();
  (void)flow_.release();
  (void)core_.release();
  (void)trace_.release();
  (void)resources_.release();
  (void)config_.release();
}

void Runtime::start(const Options& program) {
  if (const auto settled = sim::settle_in_simulation(); !settled) throw StartError(settled.error().message);
  if (runtime::VirtualPlace::current() != nullptr) start_virtually(program);
  else start_here(program);
}

/// The options of one rank's core, with the schedule that it follows.
static runtime::CoreOptions options_on(const base::Config& config, std::uint32_t rank, std::uint32_t ranks,
                                       const runtime::World& world) {
  runtime::CoreOptions options = core_options(config);
  options.schedule = find_schedule(config, rank, ranks, world.machine.workers.size());
  return options;
}

void Runtime::start_here(const Options& program) {
  std::optional<comm::Job> job = join(*config_, *resources_);
  TracePlace place;
  if (job) place = {job->rank.value(), job->size, job->id};
  find_cores(*config_, job ? &*job : nullptr, *resources_);
  if (!job || job->here.empty() || job->here.front() == job->rank) warn_of_numa_balancing(*resources_);
  const std::optional<NamedMachine> contention_machine = find_contention_machine(
      *config_, base::process_environment(), machine_name(resources_->topology->cpu_model()), *resources_->log);
  std::optional<std::size_t> message_memory;
  if (job) message_memory = find_message_memory(*config_, contention_machine, *resources_);
  else check_message_options(*config_, *resources_->topology);
  runtime::World world = make_program_world(*config_, *resources_, program.devices);
  settle_policy(world, *config_, *resources_);
  if (place.rank == 0) save_measured_machine(world, *config_, *resources_);
  measure_links_for_policy(world, *resources_->log);
  trace_ = make_trace(*config_, place, *resources_);
  if (config_->get_bool("trace.counters")) {
    // This is tried here, so that the log has one line instead of one for each worker.
    if (const auto counters = base::open_hardware_counters()) world.counters = &base::open_hardware_counters;
    else
      resources_->log->warn("option trace.counters: tasks are traced without the processor's counts: {}",
                            counters.error().message);
  }
  std::unique_ptr<comm::Endpoint> endpoint;
  if (job) {
    comm::EndpointOptions endpoint_options = comm::comm_options(*config_);
    endpoint_options.trace = trace_->session();
    endpoint_options.networks = known_networks(world.machine);
    endpoint = open_endpoint(std::move(*job), endpoint_options, *config_, *resources_);
  }
  runtime::CoreOptions options = options_on(*config_, place.rank, place.size, world);
  options.emulation = program.emulation;
  MemoryContention contention =
      memory_contention_on(contention_machine, workers_of_largest_memory(world.machine), *resources_->log);
  options.memory_gate = contention.gate;
  options.memory_shares = std::move(contention.shares);
  if (config_->get_bool("models")) {
    resources_->models =
        LearntModels::start(*config_, world.worker_specs(), {.is_stored = !program.emulation}, *resources_);
    options.models = &resources_->models->durations();
    if (world.estimates == nullptr) world.estimates = std::make_unique<ModelEstimates>(*options.models);
  }
  if (resources_->models != nullptr) options.powers = resources_->models->powers();
  else if (options.objective != runtime::Objective::time)
    options.powers = LearntModels::stored_powers(*config_, *resources_);
  if (counts_energy(*config_) && !program.emulation) {
    FoundEnergy found = find_energy(world, *config_, resources_->ranks_here);
    world.energy = std::move(found.sources);
    for (const MissingEnergy& missing : found.missing)
      resources_->log->info("the energy of {} is not counted: {}", missing.what, missing.why);
  }
  core_ = std::make_unique<runtime::RuntimeCore>(std::move(world), options);
  flow_ = std::make_unique<dist::ProgramFlow>(*core_);
  connect_trace();
  if (message_memory) place_message_memory(*core_, *message_memory, *config_, *resources_);
  exit_status_ = std::make_unique<internal::ExitStatus>();
  if (endpoint != nullptr) join_ranks(std::move(endpoint), flow_options(*config_));
  if (base::restrict_blas_threads() != nullptr)
    company_ = std::make_unique<base::ThreadWatch>(resources_->clock->now_ns());
}

static void stop_before(const runtime::Task& task) {
  const auto process = static_cast<int>(::getpid());
  fmt::print(stderr, "stopped before {}: gdb -p {}, or kill -CONT {}\n", runtime::describe(task), process, process);
  ::raise(SIGSTOP);
}

/// Emulates as `emulation` does, but stops this process before the task that `where` names as RANK:TASK; empty: none.
/// Throws StartError.
static runtime::Emulation stopping_before(std::string_view where, std::uint32_t rank, runtime::Emulation emulation) {
  if (where.empty()) return emulation;
  const auto colon = where.find(':');
  const auto on = base::number_of<std::uint32_t>(where.substr(0, colon));
  const auto number = colon == where.npos ? std::nullopt : base::number_of<std::uint64_t>(where.substr(colon + 1));
  if (!on || !number) throw StartError(fmt::format("option debug.stop_before: {} is not RANK:TASK, as 0:17", where));
  if (*on != rank) return emulation;
  return [emulation = std::move(emulation), at = *number](const runtime::EmulatedTask& task) {
    auto work = emulation(task);
    if (work && task.number == at && !task.is_own) work->before = &stop_before;
    return work;
  };
}

/// Starts as a rank of a simulated job. What options say of this machine has no effect.
void Runtime::start_virtually(const Options& program) {
  runtime::VirtualPlace& place = *runtime::VirtualPlace::current();
  resources_->loop = &place.loop();
  resources_->clock = std::make_unique<clock::LoopClock>(place.loop());
  runtime::World world = begin_world(*config_, *resources_);
  world.driver = place.make_driver();
  const std::int64_t home = config_->get_int("caller.numa");
  place.furnish(world, {.workers = static_cast<unsigned>(config_->get_int("workers")),
                        .divides_memory = config_->get_bool("numa"),
                        .home = home < 0 ? std::nullopt : std::optional(static_cast<unsigned>(home))});
  if (!program.emulation) world.estimates = place.estimates();
  settle_policy(world, *config_, *resources_);
  trace_ = make_trace(*config_, {place.rank(), place.size(), place.job()}, *resources_);
  comm::EndpointOptions endpoint_options = comm::comm_options(*config_);
  endpoint_options.trace = trace_->session();
  auto endpoint = place.open_endpoint(endpoint_options, *resources_->log);
  runtime::CoreOptions options = options_on(*config_, place.rank(), place.size(), world);
  options.watchdog_ns = 0;  // the simulation sees when nothing goes on
  options.emulation = stopping_before(config_->get_string("debug.stop_before"), place.rank(),
                                      program.emulation ? program.emulation : place.emulation());
  options.modelled_host = &place.host();
  options.modelled_memory = place.memory();
  core_ = std::make_unique<runtime::RuntimeCore>(std::move(world), options);
  flow_ = std::make_unique<dist::ProgramFlow>(*core_);
  connect_trace();
  if (endpoint == nullptr) return;
  dist::FlowOptions flow = flow_options(*config_);
  flow.transfers.carried_bytes = place.carried_bytes();
  join_ranks(std::move(endpoint), flow);
}

/// Connects all parts to the trace, if there is one.
void Runtime::connect_trace() {
  trace_->submitter_ = &core_->submission().trace();
  trace_->connect([this](trace::Session& session) {
    for (const base::ConfigEntry& entry : config_->entries())
      session.describe_option(entry.option->name, entry.value_text(), entry.where);
    core_->trace_to(session);
    flow_->trace_to(session);
  });
}

}  // namespace tandem
