// tandem/api/runtime.cpp: the facade: configuration, world, recording.
#include "tandem/api/runtime.hpp"

#include <algorithm>
#include <utility>

#include "tandem/runtime/record/recorder.hpp"

namespace tandem {

namespace {

base::Config load_config(int* argc, char** argv, const Options& options) {
  base::Registry registry;
  register_options(registry);
  auto sources = base::ConfigSources::of_process(argc != nullptr ? *argc : 0, argv);
  // A rank of `tandem run` finds in its environment what the launcher and the user tell the communication library.
  sources.reserved_variables = {"TANDEM_JOB_*", "TANDEM_COMM_*", "TANDEM_MASTER_PORT", "TANDEM_RUN_SSH"};
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

}  // namespace

Runtime::Runtime(const Options& options)
    : config_(std::make_unique<base::Config>(load_config(nullptr, nullptr, options))), ground_(make_ground(*config_, options)) {
  start();
}

Runtime::Runtime(int& argc, char** argv, const Options& options)
    : config_(std::make_unique<base::Config>(load_config(&argc, argv, options))), ground_(make_ground(*config_, options)) {
  start();
}

Runtime::Runtime(std::unique_ptr<Ground> ground, runtime::World world, const runtime::CoreOptions& options)
    : ground_(std::move(ground)) {
  base::Registry registry;
  register_options(registry);
  config_ = std::make_unique<base::Config>(registry);
  core_ = std::make_unique<runtime::RuntimeCore>(std::move(world), options);
}

Runtime::~Runtime() = default;

void Runtime::start() {
  core_ = std::make_unique<runtime::RuntimeCore>(make_real_world(*config_, *ground_), core_options(*config_));
  if (base::restrict_blas_threads() != nullptr) company_ = std::make_unique<base::CompanyWatch>(ground_->clock->now_ns());
}

void Runtime::wait() {
  core_->wait_all();
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
  if (failure != nullptr) std::rethrow_exception(failure);
}

void Runtime::set_start(runtime::Task& task, std::function<void(runtime::Task&)> start) {
  task.extra->callback = [&task, start = std::move(start)] { start(task); };
  task.extra->on_ready = [](runtime::Task& ready, void*) {
    // Moved out: once the event is completed the task may be used again.
    const std::function<void()> begin = std::exchange(ready.extra->callback, nullptr);
    begin();
  };
}

void Runtime::start_event(Event event, const std::function<void(Event)>& start, runtime::Task& ready) {
  const bool cancelled = event.core_->is_cancelled(ready);
  if (!cancelled && start) return start(event);
  if (!cancelled) return;
  if (event.tasks_.released.task != nullptr) event.released();
  event.readable();
}

}  // namespace tandem
