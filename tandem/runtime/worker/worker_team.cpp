// tandem/runtime/worker/worker_team.cpp: makes the workers, and collects their measurements.
#include "tandem/runtime/worker/worker_team.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/runtime/device/modelled_device.hpp"
#include "tandem/runtime/exec/recorded_order.hpp"
#include "tandem/runtime/sched/placing/explainer.hpp"
#include "tandem/runtime/sched/placing/placer.hpp"
#include "tandem/runtime/worker/energy.hpp"

namespace tandem::runtime {
namespace {

/// Prefix of a worker's name, by which readers of a trace know its kind.
const char* prefix_of(DeviceKind kind) noexcept {
  switch (kind) {
    case DeviceKind::cpu: return "";
    case DeviceKind::cuda: return "cuda ";
    case DeviceKind::opencl: return "opencl ";
    default: return "user ";
  }
}

}  // namespace

WorkerTeam::WorkerTeam(World& world, const CoreOptions& options, TaskPool& pool, Executor& executor, Memory& memory)
    : caller_works_(world.caller_works),
      clock_(*world.clock),
      specs_(executor.workers()),
      emulation_(options.emulation),
      own_host_(std::make_unique<ModelledHost>()),
      counters_(world.counters),
      durations_(world.estimates.get()),
      energy_(std::make_unique<Energy>(world, options, specs_, workers_)) {
  const Machine& machine = world.machine;
  executor.memory_gate().set(options.memory_gate);
  queues_ = std::make_unique<ReadyQueues>(*world.policy, machine.distance,
                                          static_cast<unsigned>(specs_.size()) - machine.cpu_workers(), options.seed);
  const bool places = world.policy->placing() != nullptr || world.policy->pulling() != nullptr;
  if (places && machine.is_mixed())
    placer_ = Placer::make(*world.policy, machine, durations_, *queues_, clock_, caller_works_);
  if (placer_ != nullptr) {
    placer_->weigh_copies(options.copy_weight);
    placer_->use_memory(options.memory_shares, executor.memory_gate());
  }
  energy_->aim(placer_.get(), options);
  if (placer_ != nullptr && world.policy->by_data())
    queues_->choose_by_data([this](const Task& task, unsigned worker) { return placer_->missing_bytes(task, worker); });
  if (options.schedule != nullptr) order_ = std::make_unique<RecordedOrder>(options.schedule);
  if (!options.explain.empty()) {
    explainer_ = std::make_unique<Explainer>(options.explain, std::string(world.policy->name()),
                                             options.explain_to ? options.explain_to : say_on_stderr);
    if (placer_ != nullptr) placer_->explain_to(*explainer_);
  }
  const WorkerOptions worker_options{.poll_max_ns = options.poll_max_ns,
                                     .poll_for_ns = options.poll_for_ns,
                                     .adaptive_polling = options.adaptive_polling,
                                     .tasks_per_step = options.tasks_per_step,
                                     .stretch = options.device_stretch,
                                     .timed = options.statistics || options.timeline || options.emulation ||
                                              placer_ != nullptr || energy_->meters() ||
                                              options.memory_gate.limits(machine.cpu_workers()),
                                     .timeline = options.timeline,
                                     .gated = options.memory_gate.limits(machine.cpu_workers()),
                                     .metered = energy_->meters(),
                                     .counters = counters_ ? &counters_ : nullptr,
                                     .expects = &expects_,
                                     .attendance = &attendance_,
                                     .feeds = placer_ != nullptr && placer_->feeds(),
                                     .durations = &durations_,
                                     .models = options.models,
                                     .pauses = &pauses_,
                                     .explainer = explainer_.get(),
                                     .log = world.log};
  base::Waker* caller = caller_works_ ? nullptr : &world.driver->add_caller(idler_);
  for (unsigned i = 0; i < specs_.size(); ++i) {
    const bool is_caller = i == 0 && caller_works_;
    TANDEM_ASSERT(!is_caller || specs_[i].unit == nullptr);  // the caller comes and goes
    WorkerSpec spec = specs_[i];
    if (emulation_) spec.unit = emulate(i, spec, options);
    auto& worker = *workers_.emplace_back(Worker::make(i, spec, worker_options, executor, *world.clock));
    base::Waker& waker = is_caller ? world.driver->add_caller(worker)
                                   : world.driver->add(worker, {specs_[i].core, fmt::format("tandem-w{}", i)});
    queues_->set_waker(i, &waker);
    if (spec.unit != nullptr) {
      spec.unit->connect(waker);
      if (placer_ != nullptr) placer_->set_most(i, spec.unit->depth() + (spec.node != 0 ? 2 : 0));
      if (spec.node != 0) queues_->set_most_staging(i, spec.unit->depth() + 1);
    }
    if (is_caller) caller = &waker;
  }
  energy_->start();
  executor.connect(&pool, queues_.get(), placer_.get(), order_.get(), &memory, caller);
  const std::uint64_t share = options.window / (4 * specs_.size());
  executor.set_batch(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(share, 1, 32)));
}

WorkerTeam::~WorkerTeam() = default;

/// The device of a worker whose tasks take a modelled time, before its own.
Device* WorkerTeam::emulate(unsigned worker, const WorkerSpec& spec, const CoreOptions& options) {
  const ModelledDevice::Surroundings around{
      .host = options.modelled_host != nullptr ? *options.modelled_host : *own_host_,
      .memory = options.modelled_memory,
      .sleeps_after_ns = options.poll_for_ns,
      .worker = worker};
  return models_.emplace_back(std::make_unique<ModelledDevice>(emulation_, spec.device, spec.unit, around)).get();
}

bool WorkerTeam::goes_by_depth() const noexcept { return placer_ != nullptr && placer_->goes_by_depth(); }

void WorkerTeam::start() { wake_all(); }

void WorkerTeam::wake_all() {
  for (unsigned i = first(); i < workers_.size(); ++i) queues_->start(i);
}

void WorkerTeam::begin_pause() {
  TANDEM_ASSERT(!are_paused());
  pauses_.fetch_add(1, std::memory_order_release);
  wake_all();
}

bool WorkerTeam::rest() const noexcept {
  const std::uint32_t pause = pauses_.load(std::memory_order_relaxed);
  for (unsigned i = first(); i < workers_.size(); ++i)
    if (workers_[i]->rests_in() != pause) return false;
  return true;
}

void WorkerTeam::end_pause() {
  TANDEM_ASSERT(are_paused());
  pauses_.fetch_add(1, std::memory_order_release);
  wake_all();
}

void WorkerTeam::trace_to(trace::Session& session) {
  for (unsigned i = 0; i < workers_.size(); ++i)
    session.attach(workers_[i]->trace(), {.kind = trace::ActorKind::worker,
                                          .name = fmt::format("{}worker {}", prefix_of(specs_[i].device), i),
                                          .index = static_cast<std::uint16_t>(i),
                                          .core = specs_[i].core,
                                          .numa_node = specs_[i].numa_node});
  if (caller_works_) workers_[0]->trace_state();
  energy_->trace_to(session);
}

StatisticsReport WorkerTeam::statistics() const {
  StatisticsReport report;
  const std::int64_t now_ns = clock_.now_ns();
  for (const auto& worker : workers_) {
    report.workers.push_back(worker->report(now_ns));
    worker->measurements().visit_durations([&](const CodeletCore& codelet, const DurationStatistics& durations) {
      auto at = std::find_if(report.codelets.begin(), report.codelets.end(),
                             [&](const CodeletReport& known) { return known.name == codelet.name; });
      if (at == report.codelets.end()) at = report.codelets.insert(at, {codelet.name, {}});
      at->durations.merge(durations);
    });
  }
  std::sort(report.codelets.begin(), report.codelets.end(), [](const CodeletReport& a, const CodeletReport& b) {
    return a.durations.total_ns() > b.durations.total_ns();
  });
  report.energy = energy_->report(now_ns);
  return report;
}

std::vector<TimelineEvent> WorkerTeam::timeline() const {
  std::vector<TimelineEvent> events;
  for (const auto& worker : workers_) {
    const std::vector<TimelineEvent> own = worker->measurements().timeline();
    events.insert(events.end(), own.begin(), own.end());
  }
  std::sort(events.begin(), events.end(),
            [](const TimelineEvent& a, const TimelineEvent& b) { return a.start_ns < b.start_ns; });
  return events;
}

std::vector<WorkerTeam::Running> WorkerTeam::running() const {
  std::vector<Running> tasks;
  for (unsigned i = 0; i < workers_.size(); ++i)
    workers_[i]->visit_running([&](const Task& task) { tasks.push_back({i, &task}); });
  return tasks;
}

void WorkerTeam::finish_energy() { energy_->finish(clock_.now_ns()); }

model::PowerTable WorkerTeam::measured_powers() const { return energy_->measured(); }

void WorkerTeam::hand_over_durations() {
  for (const auto& worker : workers_) worker->hand_over_durations();
}

void WorkerTeam::finish_devices() noexcept {
  for (const WorkerSpec& spec : specs_)
    if (spec.unit != nullptr) spec.unit->finish();
}

}  // namespace tandem::runtime
