// tandem/api/runtime.cpp: the facade: configuration, world, recording.
#include "tandem/api/runtime.hpp"

#include <algorithm>
#include <utility>

#include "tandem/comm/bootstrap/join.hpp"
#include "tandem/comm/bootstrap/variables.hpp"
#include "tandem/runtime/record/recorder.hpp"
#include "tandem/runtime/task/describe.hpp"

namespace tandem {

namespace {

base::Config load_config(int* argc, char** argv, const Options& options) {
  base::Registry registry;
  register_options(registry);
  auto sources = base::ConfigSources::of_process(argc != nullptr ? *argc : 0, argv);
  sources.reserved_variables = comm::job_variables();  // this may be a rank of `tandem run`
  auto loaded = base::Config::load(registry, sources);
  if (!loaded.ok()) throw UsageError(loaded.error().message);
  base::Config config = std::move(loaded).value();
  if (argc != nullptr) *argc = base::remove_arguments(*argc, argv, config.consumed_arguments());
  const auto set = [&](const std::string& name, const std::string& value) {
    const auto done = config.set(name, value);
    if (!done.ok()) throw UsageError(done.error().message);
  };
  if (options.workers) set("workers", std::to_string(*options.workers));
  if (options.sched) set("sched", *options.sched);
  for (const auto& [name, value] : options.more) set(name, value);
  return config;
}

std::unique_ptr<Ground> make_ground(const base::Config& config, const Options& options) {
  auto ground = std::make_unique<Ground>();
  for (const auto& [name, make] : options.policies) ground->policies.add(name, make);
  const std::string& level = config.get_string("log");
  ground->log = std::make_unique<base::Log>(level == "error"  ? base::LogLevel::error
                                            : level == "info"  ? base::LogLevel::info
                                            : level == "debug" ? base::LogLevel::debug
                                                               : base::LogLevel::warn);
  return ground;
}

/// This process's place among the ranks of a job; null when it is alone.
std::optional<comm::Job> join(const base::Config& config, Ground& ground) {
  if (config.get_string("ranks") == "alone") return {};
  auto job = comm::join_job({.environment = base::process_environment(), .log = *ground.log});
  if (!job.ok()) throw UsageError(job.error().message);
  ground.ranks_here = job.value().ranks_here;
  if (job.value().size == 1) return {};
  return std::move(job).value();
}

std::unique_ptr<trace::Session> open_trace(trace::SessionOptions options, const std::filesystem::path& folder, Ground& ground) {
  if (!folder.empty()) options.folder = folder;
  auto session = trace::Session::open(options, *ground.clock, *ground.log, ground.loop);
  if (!session.ok()) throw UsageError(session.error().message);
  return std::move(session).value();
}

}  // namespace

Runtime::Runtime(const Options& options)
    : config_(std::make_unique<base::Config>(load_config(nullptr, nullptr, options))), ground_(make_ground(*config_, options)) {
  start(options.emulation);
}

Runtime::Runtime(int& argc, char** argv, const Options& options)
    : config_(std::make_unique<base::Config>(load_config(&argc, argv, options))), ground_(make_ground(*config_, options)) {
  start(options.emulation);
}

Runtime::Runtime(std::unique_ptr<Ground> ground, runtime::World world, const runtime::CoreOptions& options)
    : ground_(std::move(ground)) {
  base::Registry registry;
  register_options(registry);
  config_ = std::make_unique<base::Config>(registry);
  core_ = std::make_unique<runtime::RuntimeCore>(std::move(world), options);
  trace_ = std::make_unique<Trace>(nullptr, [this](const std::filesystem::path& folder) {
    TracePlace place;
    if (flow_ != nullptr) place = {.rank = flow_->rank(), .size = flow_->size()};
    return open_trace(trace_options(*config_, place, nullptr), folder, *ground_);
  });
  connect_trace();
}

Runtime::Runtime(std::unique_ptr<Ground> ground, runtime::World world, const runtime::CoreOptions& options,
                 std::unique_ptr<comm::Endpoint> endpoint, const dist::FlowOptions& flow_options,
                 std::unique_ptr<trace::Session> trace)
    : Runtime(std::move(ground), std::move(world), options) {
  if (trace != nullptr) {
    endpoint->trace_to(*trace);
    trace_->session_ = std::move(trace);
    connect_trace();
  }
  flow_ = std::make_unique<dist::Flow>(*core_, std::move(endpoint), flow_options);
}

/// The trace ends when nobody tells it anything more, and before what drives its flusher goes with the core.
Runtime::~Runtime() {
  flow_.reset();
  core_->shut_down();
  trace_->close();
}

void Runtime::start(const runtime::Emulation& emulation) {
  std::optional<comm::Job> job = join(*config_, *ground_);
  TracePlace place;
  if (job) place = {job->rank.value(), job->size, job->id};
  runtime::World world = make_real_world(*config_, *ground_);
  const bool traced = !config_->get_string("trace").empty();
  trace_ = std::make_unique<Trace>(
      traced ? open_trace(trace_options(*config_, place, ground_->topology.get()), {}, *ground_) : nullptr,
      [this, place](const std::filesystem::path& folder) {
        return open_trace(trace_options(*config_, place, ground_->topology.get()), folder, *ground_);
      });
  std::unique_ptr<comm::Endpoint> endpoint;
  if (job) {
    comm::EndpointOptions endpoint_options = comm::comm_options(*config_);
    endpoint_options.trace = trace_->session();
    auto opened = comm::Endpoint::open(std::move(*job), endpoint_options, *ground_->log);
    if (!opened.ok()) throw UsageError(opened.error().message);
    endpoint = std::move(opened).value();
  }
  runtime::CoreOptions options = core_options(*config_);
  options.emulation = emulation;
  core_ = std::make_unique<runtime::RuntimeCore>(std::move(world), options);
  connect_trace();
  if (endpoint != nullptr)
    flow_ = std::make_unique<dist::Flow>(*core_, std::move(endpoint), flow_options(*config_));
  if (base::restrict_blas_threads() != nullptr) company_ = std::make_unique<base::CompanyWatch>(ground_->clock->now_ns());
}

/// Tells everything to the trace, once there is one.
void Runtime::connect_trace() {
  trace_->submitter_ = &core_->submitter_trace();
  trace_->connect([this](trace::Session& session) {
    for (const base::ConfigEntry& entry : config_->entries())
      session.describe_option(entry.option.name, entry.value_text(), entry.where);
    core_->trace_to(session);
    if (flow_ == nullptr) return;  // it is made afterwards
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
}

runtime::Handle* Runtime::register_data(std::string name, const runtime::Shape& shape, void* memory, std::size_t ld,
                                        const std::type_info& type, const DataOptions& options,
                                        const runtime::ObjectOps* object) {
  check_options(name, options, object);
  // Empty data may have no address: give it one, so that it is not taken for data that Tandem shall allocate.
  static char nothing;
  if (memory == nullptr && shape.bytes() == 0) memory = &nothing;
  const bool elsewhere = flow_ != nullptr && options.owner && *options.owner != flow_->rank();
  runtime::Handle* handle =
      elsewhere ? core_->add_data(std::move(name), shape, nullptr, shape.rows, type, options.where)
                : core_->add_data(std::move(name), shape, memory, memory == nullptr ? SIZE_MAX : ld, type, options.where);
  handle->object = object;
  handle->typical_bytes = options.bytes != 0 ? options.bytes : shape.bytes();
  if (flow_ != nullptr) flow_->add(*handle, options.owner.value_or(dist::kEverywhere), true);
  return handle;
}

runtime::Handle* Runtime::allocate_data(std::string name, const runtime::Shape& shape, const std::type_info& type,
                                        const DataOptions& options, const runtime::ObjectOps* object) {
  check_options(name, options, object);
  runtime::Handle* handle = core_->add_data(std::move(name), shape, nullptr, shape.rows, type, options.where);
  handle->object = object;
  handle->typical_bytes = options.bytes != 0 ? options.bytes : shape.bytes();
  if (flow_ != nullptr) flow_->add(*handle, options.owner.value_or(dist::kEverywhere), false);
  return handle;
}

std::uint32_t Runtime::owner_of(runtime::Handle& handle) const {
  if (flow_ == nullptr) return 0;
  return is_owned(handle) ? flow_->owner_of(handle) : flow_->rank();
}

/// What the application sees, every rank sees; it writes only what each rank has for itself.
void Runtime::share_access(runtime::Handle& handle, AccessMode mode, const SourceLine& where) {
  if (!is_owned(handle)) return;
  if (mode != AccessMode::read)
    throw UsageError("cannot acquire " + handle.described() + " with mode " + std::string(name_of(mode)) +
                     " on every rank, since rank " + std::to_string(owner_of(handle)) + " owns it; use acquire_at_owner");
  dist::Use use{&handle, mode};
  flow_->enter({&use, 1}, {.on = dist::kEverywhere, .where = where, .is_task = false});
}

/// In a cancelled flow nothing travels any more: what is here is lent, if that leaves other ranks' copies right.
void Runtime::check_access_behind_end(runtime::Handle& handle, AccessMode mode) {
  const bool is_here = flow_ == nullptr || !is_owned(handle) || (owner_of(handle) == rank() && mode == AccessMode::read);
  if (!is_here || (mode != AccessMode::write && !handle.flow.has_value))
    throw FlowCancelled("cannot acquire " + handle.described() + " with mode " + std::string(name_of(mode)) +
                        ": the flow was cancelled; wait first");
}

dist::Flow& Runtime::own_flow(const char* action, runtime::Handle* handle) {
  runtime::Handle& data = named(handle, action);
  if (flow_ == nullptr) throw UsageError(std::string("cannot ") + action + " " + data.described() + ": there is one rank only");
  if (is_owned(data))
    throw UsageError(std::string("cannot ") + action + " " + data.described() + " explicitly, since rank " +
                     std::to_string(owner_of(data)) + " owns it: what tasks need travels by itself; send data without an owner");
  return *flow_;
}

void Runtime::refuse_pass_over() {
  throw UsageError("cannot pass over tasks: there is one rank only, which runs them all");
}

void Runtime::wait() {
  if (flow_ != nullptr) flow_->wait();
  else core_->wait_all();
  if (company_ == nullptr) return;
  constexpr std::int64_t look_every_ns = 200'000'000;
  const int strangers = company_->busy_strangers(ground_->clock->now_ns(), look_every_ns);
  if (strangers == 0) return;
  ground_->log->warn(
      "{} threads that are not Tandem's compute beside its workers; if they are the BLAS's, start the program with "
      "OMP_NUM_THREADS=1, or tell the library to use one thread per call",
      strangers);
  company_.reset();
}

Graph Runtime::record(const std::function<void()>& flow) {
  Graph graph;
  if (flow_ != nullptr) {
    graph.recording_ = std::make_unique<dist::Recording>(*core_);
    flow_->start_recording(*graph.recording_);
    try {
      flow();
    } catch (...) {
      flow_->stop_recording();
      throw;
    }
    flow_->stop_recording();
    graph.recording_->finish();
    return graph;
  }
  graph.graph_ = std::make_unique<runtime::RecordedGraph>(*core_);
  runtime::Recorder recorder(*graph.graph_);
  core_->start_recording(&recorder);
  try {
    flow();
  } catch (...) {
    core_->stop_recording();
    throw;
  }
  core_->stop_recording();
  recorder.finish();
  return graph;
}

TaskRef Runtime::replay(Graph& graph) {
  if (graph.recording_ == nullptr) return graph.graph_->replay();
  if (is_over()) return {};
  flow_->replay(*graph.recording_);
  static const Codelet end("end of a replay", [] {});
  const std::span<const TaskRef> ends = graph.recording_->ends();
  return core_->submit_after(fill(end), ends.data(), ends.size());
}

std::size_t Runtime::grain_of(std::size_t count, const RangeOptions& options) const noexcept {
  if (options.grain != 0) return options.grain;
  return std::max<std::size_t>(1, count / (std::size_t{8} * worker_count()));
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
      core_->wait(task);
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
    if (core != nullptr && !static_cast<runtime::RuntimeCore*>(core)->may_begin(ready)) return;
    // Moved out: once the event is completed the task may be used again.
    const std::function<void()> begin = std::exchange(ready.extra->callback, nullptr);
    begin();
  };
}

void Runtime::start_event(Event event, const std::function<void(Event)>& start, runtime::Task& ready) {
  if (start && event.core_->is_behind_end(ready)) {
    if (event.tasks_.released.task != nullptr) event.released();
    return event.core_->pass_over(event.tasks_.readable);
  }
  const bool cancelled = event.core_->is_cancelled(ready);
  if (!cancelled && start) return start(event);
  if (!cancelled) return;
  if (event.tasks_.released.task != nullptr) event.released();
  event.readable();
}

}  // namespace tandem
