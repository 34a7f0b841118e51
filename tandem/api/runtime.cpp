// tandem/api/runtime.cpp: the facade: functions for its templates, start, recordings and waits.
#include "tandem/api/runtime.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tandem/api/configure.hpp"
#include "tandem/api/energy_counters.hpp"
#include "tandem/api/event_state.hpp"
#include "tandem/api/exit_status.hpp"
#include "tandem/api/for_tasks_of.hpp"
#include "tandem/api/machine_option.hpp"
#include "tandem/api/memory_contention.hpp"
#include "tandem/api/message_place.hpp"
#include "tandem/api/model_folder.hpp"
#include "tandem/api/near_network.hpp"
#include "tandem/api/numa_balancing.hpp"
#include "tandem/api/part_copies.hpp"
#include "tandem/api/program_world.hpp"
#include "tandem/api/rank_cores.hpp"
#include "tandem/api/recorded_parts.hpp"
#include "tandem/api/report.hpp"
#include "tandem/api/start_error.hpp"
#include "tandem/api/trace.hpp"
#include "tandem/api/world.hpp"
#include "tandem/base/blas_threads.hpp"
#include "tandem/base/cpu_quota.hpp"
#include "tandem/base/hardware_counters.hpp"
#include "tandem/base/narrow.hpp"
#include "tandem/base/standard_streams.hpp"
#include "tandem/comm/bootstrap/join.hpp"
#include "tandem/comm/bootstrap/variables.hpp"
#include "tandem/comm/endpoint.hpp"
#include "tandem/dist/flow.hpp"
#include "tandem/dist/recording.hpp"
#include "tandem/runtime/memory/numa_memory.hpp"
#include "tandem/runtime/memory/out_of_memory.hpp"
#include "tandem/runtime/record/graph.hpp"
#include "tandem/runtime/record/recorder.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/task/main_memory_codelet.hpp"
#include "tandem/runtime/worker/worker_team.hpp"

namespace tandem {

namespace {

base::Config load_config(int* argc, char** argv, const Options& options) {
  base::hold_standard_streams();
  internal::end_cleanly_on_start_errors();
  base::Registry registry;
  register_options(registry);
  auto sources = base::ConfigSources::of_process(argc != nullptr ? *argc : 0, argv);
  sources.reserved_variables = comm::job_variables();  // the process may be a rank of `tandem run`
  auto loaded = base::Config::load(registry, sources);
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

std::unique_ptr<trace::Session> open_trace(trace::SessionOptions options, const std::filesystem::path& folder, WorldResources& resources) {
  if (!folder.empty()) options.folder = folder;
  auto session = trace::Session::open(options, *resources.clock, *resources.log, resources.loop);
  if (!session.ok()) throw StartError(session.error().message);
  return std::move(session).value();
}

runtime::Handle& named(runtime::Handle* handle, const char* action) {
  if (handle == nullptr)
    throw UsageError(std::string("cannot ") + action + " an empty Data object; register data first");
  return *handle;
}

/// Number of CPU workers in the memory that has most.
unsigned workers_of_largest_memory(const runtime::Machine& machine) {
  std::vector<unsigned> counts(machine.nodes.size());
  for (const runtime::MachineWorker& worker : machine.workers)
    if (worker.kind == DeviceKind::cpu) ++counts[worker.node];
  return *std::ranges::max_element(counts);
}

/// Index in numa_nodes() of memory for what messages bring; sets a number for option comm.progress_core.
std::optional<std::size_t> find_message_memory(base::Config& config, const std::optional<NamedMachine>& machine, const WorldResources& resources) {
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
void place_message_memory(runtime::RuntimeCore& core, std::size_t numa_place, const base::Config& config, const WorldResources& resources) {
  const auto leave = [&](const std::string& why) { resources.log->info("what messages bring lies where the system puts it: {}", why); };
  if (config.get_bool("numa")) return leave("with option numa, main memory is that of worker 0's NUMA node");
  if (core.world().page_locked != nullptr) return leave("it is page-locked, for devices");
  auto memory = runtime::make_numa_memory(*resources.topology, numa_place);
  if (!memory.ok()) return resources.log->warn("what messages bring lies where the system puts it: {}", memory.error().message);
  core.memory().set_message_memory(std::move(memory).value());
}

bool is_owned(runtime::Handle& handle) noexcept { return dist::place_of(handle).owner != dist::kEverywhere; }

}  // namespace

Runtime::Runtime(const Options& options)
    : config_(std::make_unique<base::Config>(load_config(nullptr, nullptr, options))), resources_(make_resources(*config_, options)) {
  start(options);
}

Runtime::Runtime(int& argc, char** argv, const Options& options)
    : config_(std::make_unique<base::Config>(load_config(&argc, argv, options))), resources_(make_resources(*config_, options)) {
  start(options);
}

Runtime::Runtime(std::unique_ptr<WorldResources> resources, runtime::World world, const runtime::CoreOptions& options)
    : resources_(std::move(resources)) {
  base::Registry registry;
  register_options(registry);
  config_ = std::make_unique<base::Config>(registry);
  core_ = std::make_unique<runtime::RuntimeCore>(std::move(world), options);
  trace_ = std::make_unique<Trace>(nullptr, [this](const std::filesystem::path& folder) {
    TracePlace place;
    if (flow_ != nullptr) place = {.rank = flow_->rank(), .size = flow_->size()};
    return open_trace(trace_options(*config_, place, nullptr), folder, *resources_);
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
  flow_ = std::make_unique<dist::Flow>(*core_, std::move(endpoint), flow_options);
}

/// Ends the trace when no part emits events any more, and before the core, whose driver runs the flusher, is destroyed.
Runtime::~Runtime() {
  if (core_->loop().is_in_child()) {
    leave_to_parent();
    return;
  }
  const unsigned ranks = size(), own_rank = rank();
  const bool has_ranks = flow_ != nullptr;  // then the flow says how it ended, and the core whether anything is left
  bool is_well = !has_ranks || flow_->end();
  flow_.reset();
  if (!core_->shut_down() && !has_ranks) is_well = false;
  if (core_->has_lost_reports()) is_well = false;
  if (!is_well && exit_status_ != nullptr) exit_status_->fail();
  if (resources_->models != nullptr) resources_->models->save(core_->workers().measured_powers(), *resources_->log);
  std::filesystem::path traced;  // folder of the trace, for a report
  if (trace_->session() != nullptr && !config_->get_string("report").empty()) traced = trace_->session()->rank_folder().parent_path();
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
  std::optional<comm::Job> job = join(*config_, *resources_);
  TracePlace place;
  if (job) place = {job->rank.value(), job->size, job->id};
  find_cores(*config_, job ? &*job : nullptr, *resources_);
  if (!job || job->here.empty() || job->here.front() == job->rank)
    if (const std::string warning = internal::warning_of_numa_balancing(resources_->topology->numa_nodes().size()); !warning.empty())
      resources_->log->warn("{}", warning);
  const std::optional<NamedMachine> contention_machine =
      find_contention_machine(*config_, base::process_environment(), machine_name(resources_->topology->cpu_model()), *resources_->log);
  std::optional<std::size_t> message_memory;
  if (job) message_memory = find_message_memory(*config_, contention_machine, *resources_);
  else check_message_options(*config_, *resources_->topology);
  runtime::World world = make_program_world(*config_, *resources_, program.devices);
  settle_policy(world, *config_, *resources_);
  if (place.rank == 0) save_measured_machine(world, *config_, *resources_);
  measure_links_for_policy(world, *resources_->log);
  const bool traced = !config_->get_string("trace").empty() || !config_->get_string("report").empty();
  trace_ = std::make_unique<Trace>(
      traced ? open_trace(trace_options(*config_, place, resources_->topology.get()), {}, *resources_) : nullptr,
      [this, place](const std::filesystem::path& folder) {
        return open_trace(trace_options(*config_, place, resources_->topology.get()), folder, *resources_);
      });
  if (config_->get_bool("trace.counters")) {
    // This is tried here, so that the log has one line instead of one for each worker.
    if (const auto counters = base::open_hardware_counters()) world.counters = &base::open_hardware_counters;
    else resources_->log->warn("option trace.counters: tasks are traced without the processor's counts: {}", counters.error().message);
  }
  std::unique_ptr<comm::Endpoint> endpoint;
  if (job) {
    comm::EndpointOptions endpoint_options = comm::comm_options(*config_);
    endpoint_options.trace = trace_->session();
    endpoint_options.networks = known_networks(world.machine);
    std::optional<base::ScopedAffinity> near_card;  // for its memory, and its thread, which inherits this
    if (config_->get_bool("bind"))
      if (const auto pus = pus_near_network(*resources_->topology); !pus.empty()) near_card.emplace(pus);
    auto opened = comm::Endpoint::open(std::move(*job), endpoint_options, *resources_->log);
    near_card.reset();
    if (!opened.ok()) throw StartError(opened.error().message);
    endpoint = std::move(opened).value();
  }
  runtime::CoreOptions options = core_options(*config_);
  options.emulation = program.emulation;
  MemoryContention contention = memory_contention_on(contention_machine, workers_of_largest_memory(world.machine), *resources_->log);
  options.memory_gate = contention.gate;
  options.memory_shares = std::move(contention.shares);
  if (config_->get_bool("models")) {
    resources_->models = LearntModels::start(*config_, world.worker_specs(), {.is_stored = !program.emulation}, *resources_);
    options.models = &resources_->models->durations();
    if (world.estimates == nullptr) world.estimates = std::make_unique<ModelEstimates>(*options.models);
  }
  if (resources_->models != nullptr) options.powers = resources_->models->powers();
  else if (options.objective != runtime::Objective::time) options.powers = LearntModels::stored_powers(*config_, *resources_);
  if (counts_energy(*config_) && !program.emulation) {
    FoundEnergy found = find_energy(world, *config_, resources_->ranks_here);
    world.energy = std::move(found.sources);
    for (const MissingEnergy& missing : found.missing) resources_->log->info("the energy of {} is not counted: {}", missing.what, missing.why);
  }
  core_ = std::make_unique<runtime::RuntimeCore>(std::move(world), options);
  connect_trace();
  if (message_memory) place_message_memory(*core_, *message_memory, *config_, *resources_);
  exit_status_ = std::make_unique<internal::ExitStatus>();
  if (endpoint != nullptr)
    flow_ = std::make_unique<dist::Flow>(*core_, std::move(endpoint), flow_options(*config_));
  if (base::restrict_blas_threads() != nullptr) company_ = std::make_unique<base::ThreadWatch>(resources_->clock->now_ns());
}

/// Connects all parts to the trace, if there is one.
void Runtime::connect_trace() {
  trace_->submitter_ = &core_->submission().trace();
  trace_->connect([this](trace::Session& session) {
    for (const base::ConfigEntry& entry : config_->entries())
      session.describe_option(entry.option.name, entry.value_text(), entry.where);
    core_->trace_to(session);
    if (flow_ == nullptr) return;  // the flow is made later
    flow_->endpoint().trace_to(session);
    flow_->trace_to(session);
  });
}

void Runtime::check_options(const std::string& name, const DataOptions& options, const runtime::ObjectOps* object) const {
  const auto refuse = [&](const std::string& why) {
    throw UsageError("data '" + name + "' (at " + runtime::describe(options.where) + ") " + why);
  };
  if (options.owner && *options.owner >= size())
    refuse("is given to rank " + std::to_string(*options.owner) + ", but there are " + std::to_string(size()) + " ranks");
  if (options.bytes != 0 && object == nullptr) refuse("has the bytes of its shape; option bytes is for objects");
  if (options.bytes > runtime::kMostDataBytes)
    refuse("is said to take " + std::to_string(options.bytes) + " bytes, more than the " +
           std::to_string(runtime::kMostDataBytes) + " that one piece of data can have");
}

runtime::Handle* Runtime::register_data(std::string name, const runtime::Shape& shape, void* memory, std::size_t ld,
                                        const std::type_info& type, const DataOptions& options,
                                        const runtime::ObjectOps* object, std::unique_ptr<const runtime::Layout> layout) {
  check_options(name, options, object);
  if (name.empty()) name = "data " + std::to_string(data_count_);
  ++data_count_;
  // Empty data may have no address: it gets one, so that it is not taken for data that Tandem allocates.
  static char nothing;
  if (memory == nullptr && shape.bytes() == 0) memory = &nothing;
  const bool elsewhere = flow_ != nullptr && options.owner && *options.owner != flow_->rank();
  runtime::Handle* handle =
      elsewhere ? core_->data().add(std::move(name), shape, nullptr, shape.rows, type, options.where, std::move(layout))
                : core_->data().add(std::move(name), shape, memory, memory == nullptr ? SIZE_MAX : ld, type, options.where, std::move(layout));
  handle->object = object;
  handle->typical_bytes = options.bytes != 0 ? options.bytes : shape.bytes();
  core_->memory().settle_home(*handle);
  if (flow_ != nullptr) flow_->add(*handle, options.owner.value_or(dist::kEverywhere), true);
  if (options.owner) ++owned_data_;
  return handle;
}

runtime::Handle* Runtime::allocate_data(std::string name, const runtime::Shape& shape, const std::type_info& type,
                                        const DataOptions& options, const runtime::ObjectOps* object,
                                        std::unique_ptr<const runtime::Layout> layout) {
  check_options(name, options, object);
  if (name.empty()) name = "data " + std::to_string(data_count_);
  ++data_count_;
  runtime::Handle* handle = core_->data().add(std::move(name), shape, nullptr, shape.rows, type, options.where, std::move(layout));
  handle->object = object;
  handle->typical_bytes = options.bytes != 0 ? options.bytes : shape.bytes();
  core_->memory().settle_home(*handle);
  if (flow_ != nullptr) flow_->add(*handle, options.owner.value_or(dist::kEverywhere), false);
  if (options.owner) ++owned_data_;
  return handle;
}

void Runtime::check_division(runtime::Handle& whole, const SourceLine& where) {
  core_->submission().thread().check("divide data");
  core_->data().check_owned("divide", whole, where);
}

/// Memory of the program's does not leave; but other ranks do not know which memory is the program's.
bool Runtime::copies_parts(const runtime::Handle& whole) const noexcept {
  if (flow_ != nullptr) return flow_->has_budgets();
  return core_->memory().is_limited(0) && !whole.user_memory && !whole.is_part;
}

void Runtime::check_copies_fit(runtime::Handle& whole, std::size_t largest_part, const SourceLine& where) {
  const bool here = flow_ == nullptr || !is_owned(whole) || flow_->owner_of(whole) == flow_->rank();
  runtime::Memory& memory = core_->memory();
  if (!here || !memory.is_limited(0)) return;
  const std::size_t bytes = largest_part + (runtime::Room::counts(whole, 0) ? whole.shape.bytes() : 0), budget = memory.room().budget(0);
  if (bytes <= budget) return;
  throw OutOfMemory("cannot divide " + whole.described() + " (at " + runtime::describe(where) + "): with option memory it is copied to its "
                             "parts one after the other, and with one of them takes " + std::to_string(bytes) + " bytes in " + memory.described(0) +
                             ", whose budget is " + std::to_string(budget) + " bytes; make smaller parts, register them as data of their own "
                             "(rt.tiles), or allow more memory (option memory)");
}

/// Adds a part. If the whole has memory that the part shares, the part begins there at row and column `first`. On other
/// ranks it has its own memory.
runtime::Handle* Runtime::add_part(bool shares, std::string name, runtime::Handle& whole, const runtime::Shape& shape,
                                   std::array<std::size_t, 2> first, const std::type_info& type, const std::source_location& where) {
  DataOptions options{.where = where};
  const bool owned = flow_ != nullptr && is_owned(whole);
  if (owned) options.owner = flow_->owner_of(whole);
  const bool here = shares && (!owned || *options.owner == flow_->rank());
  if (here && !whole.home.has_memory() && shape.bytes() != 0) core_->memory().allocate_home(whole);
  runtime::Handle* const part = allocate_data(std::move(name), shape, type, options, nullptr);
  if (!here || shape.bytes() == 0) return part;
  part->home = {static_cast<std::byte*>(whole.home.pointer) + (first[0] + first[1] * whole.home.ld) * shape.element_bytes, whole.home.ld, false};
  part->is_part = whole.has_parts = true;
  return part;
}

/// Whether the data has a value, as all ranks know it; while a graph is recorded, at this point of a replay.
bool Runtime::has_value(runtime::Handle& handle) const {
  if (flow_ != nullptr && flow_->recording() != nullptr)
    if (const auto known = flow_->recording()->has_value(handle)) return *known;
  return flow_ != nullptr ? !dist::place_of(handle).unwritten : handle.flow.has_value;
}

void Runtime::forget_value(runtime::Handle& handle) {
  if (flow_ != nullptr && flow_->recording() != nullptr) return flow_->recording()->note_value(handle, false);
  core_->data().note_value(handle);
  handle.flow.has_value = false;
  if (flow_ != nullptr) dist::place_of(handle).unwritten = true;
}

bool Runtime::orders_parts() { return flow_ == nullptr || !flow_->is_over(); }
bool Runtime::orders_without_value() const noexcept { return flow_ != nullptr || is_recording(); }

void Runtime::order_parts(const internal::PartOrder& order) {
  static const runtime::TaskOps only_orders{.invoke = [](runtime::KernelCall&) {}, .always = true, .serves = true};
  static const std::shared_ptr<runtime::CodeletCore> split = runtime::make_main_memory_codelet("split");
  static const std::shared_ptr<runtime::CodeletCore> gather = runtime::make_main_memory_codelet("gather");
  const std::shared_ptr<runtime::CodeletCore>& codelet = order.splits ? split : gather;
  const runtime::TaskOps& ops = order.copied ? internal::part_copy_ops(order.splits) : only_orders;
  const auto fill = [&order](runtime::Task& task) {
    task.where = order.where;
    for (std::size_t i = 0; i < order.uses.size(); ++i)
      task.accesses()[i].set(order.uses[i].handle, order.uses[i].mode);
    if (order.copied) new (task.values()) internal::PlaceInWhole(*order.copied);
  };
  if (order.may_wait && !is_recording()) core_->submission().make_room();
  if (flow_ == nullptr) {
    runtime::Task& task = core_->submission().begin(codelet, ops, base::narrow<unsigned>(order.uses.size()));
    fill(task);
    core_->submission().submit(task);
    return;
  }
  TaskOptions options{.where = {}};
  if (is_owned(*order.uses.front().handle)) options.on = flow_->owner_of(*order.uses.front().handle);
  internal::FlowTask call{.uses = order.uses, .where = order.where, .options = &options, .always = true};
  runtime::Task* const task = begin_in_flow(call, codelet, ops);
  if (task == nullptr) return;
  fill(*task);
  if (flow_->recording() != nullptr) {
    enter_in_flow(call, *task);
    return;
  }
  core_->submission().submit(*task);
  flow_->entered();
}

std::uint32_t Runtime::reserve_tiles(const internal::TileRegistry& tiles, std::size_t element_bytes) {
  const TileGrid& grid = tiles.grid();
  if (flow_ == nullptr) return 0;
  core_->submission().thread().check("register data");
  const std::size_t count = tiles.row_tiles() * tiles.col_tiles();
  // All ranks must agree on the owners, so each asks for all of them.
  std::uint64_t digest = 0;
  const auto mix = [&digest](std::uint64_t value) { digest = (digest ^ value) * 0x9e3779b97f4a7c15ULL; };
  for (const std::size_t value : {grid.rows, grid.cols, grid.tile_rows, grid.tile_cols, element_bytes}) mix(value);
  for (std::size_t j = 0; grid.owner && j < tiles.col_tiles(); ++j)
    for (std::size_t i = 0; i < tiles.row_tiles(); ++i) {
      const std::uint32_t owner = grid.owner(i, j);
      if (owner >= size())
        throw UsageError("tile (" + std::to_string(i) + "," + std::to_string(j) + ") of '" + tiles.name() + "' (at " +
                         runtime::describe(grid.where) + ") is given to rank " + std::to_string(owner) + ", but there are " +
                         std::to_string(size()) + " ranks");
      mix(owner);
    }
  const std::uint32_t first = flow_->reserve(count, digest);
  if (grid.owner) owned_data_ += count;
  return first;
}

runtime::Handle* Runtime::allocate_tile(std::string name, const runtime::Shape& shape, const std::type_info& type,
                                        const DataOptions& options, std::uint32_t number) {
  check_options(name, options, nullptr);
  runtime::Handle* handle = core_->data().add(std::move(name), shape, nullptr, shape.rows, type, options.where);
  handle->typical_bytes = shape.bytes();
  if (flow_ != nullptr) flow_->add_reserved(*handle, options.owner.value_or(dist::kEverywhere), number);
  return handle;
}

std::uint32_t Runtime::owner_of(runtime::Handle& handle) const {
  if (flow_ == nullptr) return 0;
  return is_owned(handle) ? flow_->owner_of(handle) : flow_->rank();
}

/// Sends what the application sees to every rank; it writes only data that each rank has separately.
void Runtime::share_access(runtime::Handle& handle, AccessMode mode, const SourceLine& where) {
  if (!is_owned(handle)) return;
  if (mode != AccessMode::read)
    throw UsageError("cannot acquire " + handle.described() + " with mode " + std::string(name_of(mode)) +
                     " on every rank, since rank " + std::to_string(owner_of(handle)) + " owns it; use acquire_at_owner");
  dist::Use use{&handle, mode};
  flow_->enter({&use, 1}, {.on = dist::kEverywhere, .where = where, .is_task = false});
}

/// In a cancelled flow no data travels any more, and parts are not gathered on several ranks: the application gets the
/// local value, if other ranks' copies stay valid.
void Runtime::check_access_behind_end(runtime::Handle& handle, AccessMode mode) {
  check_divided_behind_end(handle, mode);
  const bool is_here = flow_ == nullptr || !is_owned(handle) || (owner_of(handle) == rank() && mode == AccessMode::read);
  if (!is_here || (mode != AccessMode::write && !handle.flow.has_value))
    throw FlowCancelled("cannot acquire " + handle.described() + " with mode " + std::string(name_of(mode)) +
                        ": the flow was cancelled; wait first");
}

/// The value is in the parts, or in the whole, whose order is restored after the next wait.
void Runtime::check_divided_behind_end(const runtime::Handle& handle, AccessMode mode) {
  if (flow_ == nullptr || (handle.flow.asks & (mode == AccessMode::read ? 1U : 2U)) == 0 || !is_over()) return;
  throw FlowCancelled("cannot use " + handle.described() + " with mode " + std::string(name_of(mode)) +
                      ": it is divided into parts, or is one, and the flow was cancelled before it was split or "
                      "gathered; wait first");
}

dist::Flow& Runtime::own_flow(const char* action, runtime::Handle* handle) {
  core_->submission().thread().check(action);
  runtime::Handle& data = named(handle, action);
  if (flow_ == nullptr) throw UsageError(std::string("cannot ") + action + " " + data.described() + ": there is one rank only");
  if (is_owned(data))
    throw UsageError(std::string("cannot ") + action + " " + data.described() + " explicitly, since rank " +
                     std::to_string(owner_of(data)) + " owns it: what tasks need travels by itself; send data without an owner");
  return *flow_;
}

// --- functions for the templates

runtime::Task* Runtime::begin_task(const std::shared_ptr<runtime::CodeletCore>& codelet, const runtime::TaskOps& ops,
                                   unsigned accesses) {
  return core_->submission().begin_unless_over(codelet, ops, accesses);
}

TaskRef Runtime::enter_task(runtime::Task& task) { return core_->submission().submit(task); }

TaskRef Runtime::enter_task(runtime::Task& task, const TaskOptions& options) {
  if (flow_ == nullptr) check_rank(options, task);
  set_options(options, task);
  if (options.after.empty()) return core_->submission().submit(task);
  return core_->submission().submit_after(task, options.after.data(), options.after.size());
}

/// Checks the rank of a task; on several ranks the flow places the task, and checks it.
void Runtime::check_rank(const TaskOptions& options, runtime::Task& task) {
  if (__builtin_expect(options.on.value_or(0) == 0, 1)) return;
  const SourceLine where = task.where ? task.where : SourceLine(options.where);
  core_->submission().abandon(task);
  throw UsageError("a task (at " + runtime::describe(where) + ") is to run on rank " + std::to_string(*options.on) +
                   ", but there is one rank only, rank 0");
}

IterationScope Runtime::iteration(std::int64_t number) {
  core_->submission().thread().check("begin an iteration");
  if (!std::in_range<std::int32_t>(number))
    throw UsageError("iteration " + std::to_string(number) + " cannot be traced: iterations have numbers of 32 bits");
  return {core_->submission().flow().trace().iteration, static_cast<std::int32_t>(number)};
}

static bool has_facts(const TaskOptions& options) noexcept {
  return options.iteration || options.flops != 0 || options.tag != 0 || !options.parameters.empty();
}

/// Sets the options. An exception from copying the program's types leaves this, and the task is gone.
void Runtime::set_options(const TaskOptions& options, runtime::Task& task) try {
  task.priority = options.priority;
  if (!task.where) task.where = options.where;
  if (!options.name.empty()) core_->submission().extra_of(task).name = options.name;
  if (options.callback) core_->submission().extra_of(task).callback = options.callback;
  if (has_facts(options) && (core_->submission().is_traced() || is_recording())) {
    runtime::TaskFacts& facts = core_->submission().extra_of(task).facts;
    if (options.iteration) facts.iteration = *options.iteration;
    facts.flops = options.flops;
    facts.tag = options.tag;
    facts.parameters = options.parameters;
  }
} catch (...) {
  core_->submission().abandon(task);
  throw;
}

void Runtime::drop_unfilled(runtime::Task& task) noexcept { core_->submission().abandon_unfilled(task); }

bool Runtime::skip_in_flow(std::span<const dist::Use> uses, const SourceLine& where) {
  core_->submission().thread().check("submit");  // before the operation counts, since other ranks do not submit it
  return !__builtin_expect(flow_->enters_all(), 0) && flow_->try_skip(uses, where);
}

runtime::Task* Runtime::begin_in_flow(internal::FlowTask& call, const std::shared_ptr<runtime::CodeletCore>& codelet,
                                      const runtime::TaskOps& ops) {
  core_->submission().thread().check("submit");
  const bool placed = (call.options != nullptr && call.options->on) || __builtin_expect(flow_->enters_all(), 0);
  if (!placed && !call.looked && flow_->try_skip(call.uses, call.where)) return nullptr;
  if (!call.always) {
    if (flow_->recording() == nullptr) core_->submission().make_room();  // before other ranks count on the task
    if (flow_->is_over()) return nullptr;
  }
  call.wish.where = call.where;
  call.wish.codelet = codelet.get();
  core_->submission().adopt(codelet);
  if (call.options != nullptr) {
    call.wish.on = call.options->on;
    call.wish.priority = call.options->priority;
  }
  const auto accesses = base::narrow<unsigned>(call.uses.size());
  if (flow_->recording() != nullptr) {
    flow_->settle_all(call.uses);
    if (call.reduces) flow_->share_reductions(call.uses, call.wish);
    call.executor = flow_->executor_of(call.uses, call.wish);
    if (call.executor == flow_->rank() || call.executor == dist::kEverywhere) return &core_->submission().begin(codelet, ops, accesses);
    record_in_flow(call, nullptr);
    return nullptr;
  }
  if (call.reduces) flow_->share_reductions(call.uses, call.wish);
  if (!flow_->enter(call.uses, call.wish)) return nullptr;
  return &core_->submission().begin(codelet, ops, accesses);
}

TaskRef Runtime::enter_in_flow(internal::FlowTask& call, runtime::Task& task) {
  // With `reduce`, this rank's share has taken the place of the data.
  if (call.reduces)
    for (unsigned i = 0; i < call.uses.size(); ++i) task.accesses()[i].rebind(call.uses[i].handle);
  if (flow_->recording() != nullptr) {
    core_->submission().keep_iteration(task);
    if (call.options != nullptr) set_options(*call.options, task);
    record_in_flow(call, &task);
    return call.result;
  }
  const TaskRef ref = call.options != nullptr ? enter_task(task, *call.options) : core_->submission().submit(task);
  flow_->entered();
  return ref;
}

void Runtime::record_in_flow(internal::FlowTask& call, runtime::Task* model) {
  dist::Recording& recording = *flow_->recording();
  std::vector<TaskRef> after;
  if (call.options != nullptr)
    for (const TaskRef& task : call.options->after) after.push_back(internal::as_kept(task, recording_number_));
  call.result = recording.add(call.uses, call.wish, call.executor, model, after);
  if (call.result.task != nullptr)
    call.result = TaskRef::recorded(call.result.task, recording_number_, base::narrow<std::uint32_t>(call.result.id));
  if (flow_->is_skipping()) recording.note_skipped();
}

void Runtime::skip_tasks(std::uint64_t tasks) {
  core_->submission().thread().check("skip tasks");
  if (flow_ != nullptr) flow_->skip(tasks);
  else if (tasks > 0 && !core_->submission().is_over())
    throw UsageError("cannot skip tasks: there is one rank only, which runs them all");
}

bool Runtime::is_concerned(std::span<const dist::Use> uses) const { return flow_->concerns(uses); }

bool Runtime::prunes() const noexcept { return flow_ != nullptr && flow_->prunes(); }

bool internal::checks_pruning(Runtime& rt) noexcept { return rt.flow()->checks_pruning(); }

void internal::submit_skipped(Runtime& rt, std::size_t i, const std::function<void()>& submit) {
  const dist::Flow::SkipCheck skipping(*rt.flow(), i);
  submit();
  skipping.check_count();
}

void Runtime::wait(const TaskRef& task) {
  check_not_recording("wait for a task");
  core_->accesses().wait(task);
}
void Runtime::wait(const Replay& replay, const TaskRef& task) {
  check_not_recording("wait for a task");
  if (replay.task == nullptr || task.task == nullptr) return;
  if (flow_ == nullptr) return runtime::wait_in_replay(*core_, replay, replay.recording, replay.first, task);
  if (!task.is_of_recording(replay.recording))
    throw UsageError("cannot wait for a task in this replay: it is not of the recording that was replayed");
  core_->accesses().wait(replay);
}
void Runtime::wait_for_data(runtime::Handle* handle) {
  check_not_recording("wait for data");
  internal::about_to_use(handle, false);
  check_divided_behind_end(named(handle, "wait for"), AccessMode::read);
  core_->accesses().wait(*handle);
}

bool Runtime::is_recording() const noexcept {
  return core_->submission().recorder() != nullptr || (flow_ != nullptr && flow_->recording() != nullptr);
}
void Runtime::check_not_recording(const char* action) const {
  if (!is_recording()) return;
  throw UsageError(std::string("cannot ") + action +
                   " while a graph is recorded: nothing runs meanwhile; do it outside the recording, before or after a replay");
}

void Runtime::cancel() {
  if (flow_ != nullptr) flow_->cancel();
  else core_->waits().cancel();
}
bool Runtime::cancelled() { return flow_ != nullptr ? flow_->cancelled() : core_->submission().is_over(); }
bool Runtime::is_over() { return flow_ != nullptr ? flow_->is_over() : core_->submission().is_over(); }
std::uint64_t Runtime::position() const noexcept { return flow_ != nullptr ? flow_->position() : core_->submission().last_id(); }
std::optional<std::uint64_t> Runtime::cancelled_at() const noexcept {
  return flow_ != nullptr ? flow_->cancelled_at() : core_->waits().cancelled_at();
}

void internal::EndAccess::operator()(runtime::ApplicationAccess* access) const noexcept {
  access->accesses->release(*access);
  delete access;
}

internal::HeldAccess Runtime::begin_access(runtime::Handle* handle, AccessMode mode, const SourceLine& where, unsigned node) {
  runtime::Handle& data = named(handle, "acquire");
  core_->submission().thread().check("acquire data");
  check_node("acquire", node);
  if (is_over()) check_access_behind_end(data, mode);
  else if (flow_ != nullptr) share_access(data, mode, where);
  internal::HeldAccess access(core_->accesses().acquire(data, mode, where, node).release());
  if (flow_ != nullptr) flow_->entered();
  return access;
}

internal::HeldAccess Runtime::begin_access_at_owner(runtime::Handle* handle, AccessMode mode, const SourceLine& where) {
  runtime::Handle& data = named(handle, "acquire");
  if (flow_ == nullptr) return begin_access(handle, mode, where);
  core_->submission().thread().check("acquire data");
  if (flow_->is_over()) return owner_of(data) == rank() ? begin_access(handle, mode, where) : nullptr;
  dist::Use use{&data, mode};
  if (!flow_->enter({&use, 1}, {.on = owner_of(data), .where = where, .is_task = false})) return nullptr;
  internal::HeldAccess access(core_->accesses().acquire(data, mode, where).release());
  flow_->entered();
  return access;
}

Event Runtime::submit_event(std::string name, Release release, std::function<void(Event)> start, std::span<const dist::Use> uses,
                            const SourceLine& where) {
  core_->submission().thread().check("submit an event");
  if (is_over()) return {};
  if (core_->submission().recorder() != nullptr && start) return record_event(std::move(name), release, std::move(start), uses, where);
  if (flow_ != nullptr && flow_->recording() != nullptr && start) return record_event_in_flow(name, release, start, uses, where);
  if (flow_ != nullptr && !flow_->enter(uses, {.where = where})) return {};
  const auto state = enter_event(std::move(name), release, std::move(start), uses, where);
  if (flow_ != nullptr) flow_->entered();
  return state->event();
}

/// Enters an event that takes place here; on several ranks, at the position that was entered.
std::shared_ptr<internal::EventState> Runtime::enter_event(std::string name, Release release, std::function<void(Event)> start,
                                                           std::span<const dist::Use> uses, const SourceLine& where) {
  runtime::Task& task = core_->events().begin(std::move(name), base::narrow<unsigned>(uses.size()));
  for (std::size_t i = 0; i < uses.size(); ++i) task.accesses()[i].set(uses[i].handle, uses[i].mode);
  task.where = where;
  // The state is shared with the task, which may start before this returns.
  const auto state = std::make_shared<internal::EventState>(*core_, runtime::name_of(task), std::move(start));
  // An event without a start does not count as a task: the program completes it in any case.
  set_start(task, state->has_start(), [state](runtime::Task& ready) { state->begin(ready); });
  core_->events().submit(task, release == Release::separate, state->tasks());
  return state;
}

namespace {

struct NoWork {
  void operator()() const {}
};
using NoWorkCode = internal::TaskCode<internal::TypedCore<NoWork>>;

}  // namespace

/// All ranks note the event and its rank. Each replay submits another event there.
Event Runtime::record_event_in_flow(const std::string& name, Release release, const std::function<void(Event)>& start,
                                    std::span<const dist::Use> uses, const SourceLine& where) {
  dist::Recording& recording = *flow_->recording();
  const dist::Wish wish{.where = where};
  flow_->settle_all(uses);
  const std::uint32_t executor = flow_->executor_of(uses, wish);
  const bool is_here = executor == flow_->rank() || executor == dist::kEverywhere;
  runtime::Task* model = nullptr;
  if (is_here) {
    static const Codelet recorded("recorded event", NoWork());
    model = &core_->submission().begin(recorded.core(), NoWorkCode::ops, base::narrow<unsigned>(uses.size()));
    for (std::size_t i = 0; i < uses.size(); ++i) model->accesses()[i].set(uses[i].handle, uses[i].mode);
  }
  const TaskRef known = recording.add_event(uses, wish, executor, model, release == Release::separate,
                                            [this, name, release, start, where](std::span<const dist::Use> now) {
                                              return enter_event(name, release, start, now, where)->tasks();
                                            });
  if (flow_->is_skipping()) recording.note_skipped();
  if (!is_here) return {};
  const auto state = std::make_shared<internal::EventState>(*core_, name, nullptr);
  state->mark_recorded(TaskRef::recorded(known.task, recording_number_, base::narrow<std::uint32_t>(known.id)));
  return state->event();
}

Event Runtime::record_event(std::string name, Release release, std::function<void(Event)> start, std::span<const dist::Use> uses,
                            const SourceLine& where) {
  runtime::Task& task = core_->events().begin_recorded(std::move(name), base::narrow<unsigned>(uses.size()));
  for (std::size_t i = 0; i < uses.size(); ++i) task.accesses()[i].set(uses[i].handle, uses[i].mode);
  task.where = where;
  const bool with_release = release == Release::separate;
  const auto recorded = std::make_shared<internal::RecordedEvent>(
      internal::RecordedEvent{*core_, runtime::name_of(task), std::move(start), with_release});
  task.extra->callback = [recorded] {};  // copied to each replay's task, so that it lives as long as they do
  task.extra->on_ready = &internal::RecordedEvent::begin;
  task.extra->context = recorded.get();
  const auto state = std::make_shared<internal::EventState>(*core_, recorded->name, nullptr);
  state->mark_recorded(core_->events().record(task, with_release));
  return state->event();
}

void internal::check_access_count(const std::string& codelet, std::size_t count, const SourceLine& where) {
  if (count <= runtime::kMaxAccesses) return;
  throw UsageError("task '" + codelet + "' (at " + runtime::describe(where) + ") names " + std::to_string(count) +
                   " data, and a task may name " + std::to_string(runtime::kMaxAccesses) + " at most; use several tasks, or larger data");
}

// --- ranks

std::uint32_t Runtime::rank() const noexcept { return flow_ != nullptr ? flow_->rank() : 0; }
std::uint32_t Runtime::size() const noexcept { return flow_ != nullptr ? flow_->size() : 1; }

std::uint32_t Runtime::owner_of_handle(runtime::Handle* handle) { return owner_of(named(handle, "look for the owner of")); }

DataOptions Runtime::options_beside(runtime::Handle* handle, const std::source_location& where) {
  DataOptions options{.where = where};
  if (flow_ != nullptr && is_owned(named(handle, "lay data beside"))) options.owner = owner_of(*handle);
  return options;
}

void Runtime::fetch_to(runtime::Handle* handle, std::optional<std::uint32_t> rank, const SourceLine& where) {
  core_->submission().thread().check("fetch data");
  internal::about_to_use(handle, false);
  if (flow_ != nullptr) flow_->fetch(named(handle, "fetch"), rank.value_or(dist::kEverywhere), 0, where);
}
void Runtime::migrate_to(runtime::Handle* handle, std::uint32_t rank, const SourceLine& where) {
  core_->submission().thread().check("migrate data");
  if (handle != nullptr && internal::PartPlan::is_bound(*handle))
    throw UsageError("cannot migrate " + handle->described() + ": it has parts, or is a part; let the parts end first");
  if (flow_ != nullptr) flow_->migrate(named(handle, "migrate"), rank, where);
}
void Runtime::flush_copies(runtime::Handle* handle) {
  core_->submission().thread().check("flush data");
  if (flow_ != nullptr) flow_->flush(named(handle, "flush"));
}
std::vector<MemoryNodeDescription> Runtime::memory_nodes() const {
  runtime::Memory& memory = core_->memory();
  std::vector<MemoryNodeDescription> nodes(memory.node_count());
  for (unsigned node = 0; node < nodes.size(); ++node) {
    nodes[node].name = core_->world().machine.nodes[node].name;
    if (memory.is_limited(node)) nodes[node].budget = memory.room().budget(node);
    nodes[node].is_storage = memory.room().is_storage(node);
  }
  const auto& workers = core_->world().machine.workers;
  for (unsigned worker = 0; worker < workers.size(); ++worker) nodes[workers[worker].node].workers.push_back(worker);
  return nodes;
}

void Runtime::check_node(const char* action, unsigned node) const {
  const runtime::Memory& memory = core_->memory();
  if (node >= memory.node_count())
    throw UsageError("cannot " + std::string(action) + " data on memory node " + std::to_string(node) + ": there are " +
                     std::to_string(memory.node_count()) + ", from 0; rt.memory_nodes() lists them");
  if (core_->memory().room().is_storage(node))
    throw UsageError("cannot " + std::string(action) + " data on memory node " + std::to_string(node) +
                     ", which is a file for what main memory has no room for");
}

void Runtime::prefetch_to(runtime::Handle* handle, unsigned node, const SourceLine& where) {
  runtime::Handle& data = named(handle, "prefetch");
  check_node("prefetch", node);
  if (is_over()) return;
  if (flow_ != nullptr && !flow_->has_spare_id()) return core_->memory().note_ignored_prefetch();
  core_->accesses().prefetch(data, node, where);
}

void Runtime::release_memory_of(runtime::Handle* handle, bool now) {
  core_->submission().thread().check("release memory of data");
  core_->memory().note_unwanted(named(handle, "release memory of"), now);
}
void Runtime::send_to(runtime::Handle* handle, std::uint32_t to, std::uint64_t tag, int priority) {
  internal::about_to_use(handle, false);
  own_flow("send", handle).send(*handle, to, tag, priority);
  ownerless_warning_due_ = false;
}
void Runtime::receive_from(runtime::Handle* handle, std::uint32_t from, std::uint64_t tag) {
  internal::about_to_use(handle, true);
  own_flow("receive", handle).receive(*handle, from, tag);
  ownerless_warning_due_ = false;
}
void Runtime::agree_on_least(std::shared_ptr<std::atomic<std::uint64_t>> value) {
  if (flow_ != nullptr) flow_->agree_on_least(std::move(value));
}
void Runtime::set_placement(dist::PlacementPolicy policy) {
  if (flow_ != nullptr) flow_->set_placement(std::move(policy));
}
dist::FlowStatistics Runtime::flow_statistics() const {
  return flow_ != nullptr ? flow_->statistics() : dist::FlowStatistics{};
}

/// Warns once that no data has an owner. Such data is a copy for each rank; a program with no other data either forgot
/// the owners, or sends values itself.
void Runtime::say_once_that_nobody_owns_data() {
  if (!std::exchange(ownerless_warning_due_, false)) return;
  if (flow_->rank() != 0 || owned_data_ > 0 || data_count_ == 0 || flow_->statistics().tasks == 0) return;
  resources_->log->warn(
      "no data has an owner, so each of the {} ranks has its own copy of all data and runs every task; to share the work, register "
      "data with DataOptions{{.owner = rank}}",
      flow_->size());
}

// --- what is known

unsigned Runtime::worker_count() const noexcept { return static_cast<unsigned>(core_->world().machine.workers.size()); }
std::string Runtime::option(std::string_view name) const {
  for (const base::ConfigEntry& entry : config_->entries())
    if (entry.option.name == name) return entry.value_text();
  throw UsageError("there is no option '" + std::string(name) + "'; `tandem config` lists them");
}
StatisticsReport Runtime::statistics() { return core_->statistics(); }
std::vector<TimelineEvent> Runtime::timeline() const { return core_->workers().timeline(); }

// --- waits and recordings

void Runtime::pause() { core_->pause(); }
void Runtime::resume() { core_->resume(); }
bool Runtime::is_paused() const noexcept { return core_->workers().are_paused(); }

void Runtime::wait() {
  core_->submission().thread().check("wait");
  if (is_paused()) throw UsageError("wait() is for tasks that run, and the workers are paused: call resume() first");
  if (flow_ != nullptr) {
    say_once_that_nobody_owns_data();
    flow_->wait();
  } else {
    core_->waits().wait_all();
  }
  if (company_ == nullptr) return;
  constexpr std::int64_t look_every_ns = 200'000'000;
  const int strangers = company_->busy_others(resources_->clock->now_ns(), look_every_ns);
  if (strangers == 0) return;
  resources_->log->warn(
      "{} threads that do not belong to Tandem compute beside its workers; if they belong to the BLAS, start the program with "
      "OMP_NUM_THREADS=1, or set the library to one thread per call",
      strangers);
  company_.reset();
}

/// Restores the partitions as they were before the recording. `is_whole` false: it was abandoned.
void Runtime::end_recording_of_parts(Graph& graph, bool is_whole) {
  recorded_parts_ = nullptr;
  const internal::RecordedParts::ForEachDatum data = graph.each_datum();
  graph.parts_->finish(is_whole ? &data : nullptr, part_plans_);
}

Graph Runtime::record(const std::function<void()>& flow) {
  Graph graph;
  graph.parts_ = std::make_unique<internal::RecordedParts>();
  if (flow_ != nullptr) {
    graph.recording_ = std::make_unique<dist::Recording>(*core_);
    flow_->start_recording(*graph.recording_);
    graph.number_ = recording_number_ = runtime::next_recording_number();
    recorded_parts_ = graph.parts_.get();
    try {
      flow();
      graph.parts_->check();
      flow_->end_recorded_sums();
    } catch (...) {
      flow_->stop_recording();
      end_recording_of_parts(graph, false);
      throw;
    }
    flow_->stop_recording();
    end_recording_of_parts(graph, true);
    graph.recording_->finish();
    return graph;
  }
  graph.graph_ = std::make_unique<runtime::RecordedGraph>(*core_);
  graph.number_ = graph.graph_->number();
  runtime::Recorder recorder(*graph.graph_);
  recorder.start();
  recorded_parts_ = graph.parts_.get();
  try {
    flow();
    graph.parts_->check();
  } catch (...) {
    recorder.stop();
    end_recording_of_parts(graph, false);
    throw;
  }
  recorder.stop();
  recorder.finish();
  end_recording_of_parts(graph, true);
  return graph;
}

Replay Runtime::replay(Graph& graph) {
  core_->submission().thread().check("replay a graph");
  if (graph.recording_ == nullptr && graph.graph_ == nullptr)
    throw UsageError("cannot replay an empty Graph; assign what record returns to it first");
  const auto between_parts = [&](const auto& enter) {
    if (is_recording() || is_over()) return enter();
    graph.parts_->prepare(graph.each_datum(), part_plans_);
    bool is_entered = false;
    try {
      is_entered = enter();
    } catch (...) {
      graph.parts_->leave(false);
      throw;
    }
    graph.parts_->leave(is_entered);
    return is_entered;
  };
  if (graph.recording_ == nullptr) {
    TaskRef end;
    between_parts([&] {
      end = graph.graph_->replay();
      return end.task != nullptr;
    });
    return {end, graph.number_, end.id + 1 - graph.graph_->task_count()};
  }
  check_not_recording("replay a graph");
  if (is_over() || !between_parts([&] { return flow_->replay(*graph.recording_); })) return {};
  static const Codelet end("end of a replay", NoWork());
  const std::span<const TaskRef> ends = graph.recording_->ends();
  return {core_->submission().submit_after(core_->submission().begin(end.core(), NoWorkCode::ops, 0), ends.data(), ends.size()),
          graph.number_, 0};
}

std::size_t Runtime::grain_of(std::size_t count, const RangeOptions& options) const noexcept {
  if (options.grain != 0) return options.grain;
  // The chunks depend on the most workers of a rank, since every rank must submit the same tasks.
  const std::size_t workers = flow_ != nullptr ? flow_->most_workers() : worker_count();
  return std::max<std::size_t>(1, count / (8 * workers));
}

std::size_t Runtime::chunk_count(std::size_t begin, std::size_t end, const RangeOptions& options) const noexcept {
  if (begin >= end) return 0;
  const std::size_t grain = grain_of(end - begin, options);
  return (end - begin) / grain + ((end - begin) % grain != 0 ? 1 : 0);
}

void Runtime::wait_for(const std::vector<TaskRef>& tasks) {
  std::exception_ptr failure;
  for (const TaskRef& task : tasks) {
    try {
      core_->accesses().wait(task);
    } catch (const StuckError&) {
      throw;  // the others would not end either
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  const bool ignored = std::any_of(tasks.begin(), tasks.end(), [](const TaskRef& task) { return task.task == nullptr; });
  if (failure == nullptr && ignored && is_over())
    throw FlowCancelled("tasks that are waited for did not run: the flow was cancelled before them");
  if (failure != nullptr) std::rethrow_exception(failure);
}

void Runtime::set_start(runtime::Task& task, bool counts_as_task, std::function<void(runtime::Task&)> start) {
  task.extra->callback = [&task, start = std::move(start)] { start(task); };
  task.extra->context = counts_as_task ? core_.get() : nullptr;
  task.extra->on_ready = [](runtime::Task& ready, void* core) {
    if (core != nullptr && !static_cast<runtime::RuntimeCore*>(core)->events().may_begin(ready)) return;
    // Moved out, since the task may be used again once the event is completed.
    const std::function<void()> begin = std::exchange(ready.extra->callback, nullptr);
    begin();
  };
}

}  // namespace tandem
