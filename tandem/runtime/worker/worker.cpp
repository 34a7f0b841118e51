// tandem/runtime/worker/worker.cpp: what all workers do: take tasks, prepare them, end them, and rest.
#include "tandem/runtime/worker/worker.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "tandem/runtime/exec/internal_tasks.hpp"
#include "tandem/runtime/exec/worker_thread.hpp"
#include "tandem/runtime/sched/placing/explainer.hpp"
#include "tandem/runtime/sched/placing/placer.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/worker/core_worker.hpp"
#include "tandem/runtime/worker/device_worker.hpp"
#include "tandem/trace/current.hpp"

namespace tandem::runtime {

namespace {
constexpr std::int64_t kFirstPauseNs = 60;
const TaskOps* const kCombineOps = &combine_ops();

using trace::WorkerState;
}  // namespace

Worker::Worker(unsigned index, const WorkerSpec& spec, const WorkerOptions& options, Executor& executor,
               const clock::Clock& clock)
    : index_(index),
      spec_(spec),
      options_(options),
      executor_(executor),
      clock_(clock),
      hold_(index, spec_, executor, clock),
      durations_(options.models != nullptr ? std::make_unique<DurationModels::Collector>(*options.models, index)
                                           : nullptr),
      measures_(options.timed || durations_ != nullptr),
      measurements_(index, options.timeline),
      progress_(options.attendance),
      gate_(options.gated && spec.device == DeviceKind::cpu ? &executor.memory_gate() : nullptr),
      feeds_(options.feeds),
      adapts_polling_(options.adaptive_polling && spec.device == DeviceKind::cpu) {
  origin_.kind = Origin::Kind::worker;
  origin_.trace = &trace_.stream;
  origin_.worker = index;
  if (options_.counters != nullptr) counters_ = std::make_unique<KernelCounters>(*options_.counters);
}

std::unique_ptr<Worker> Worker::make(unsigned index, const WorkerSpec& spec, const WorkerOptions& options,
                                     Executor& executor, const clock::Clock& clock) {
  if (spec.unit != nullptr) return std::make_unique<DeviceWorker>(index, spec, options, executor, clock);
  return std::make_unique<CoreWorker>(index, spec, options, executor, clock);
}

// --- steps

std::int64_t Worker::step(std::int64_t now_ns) {
  const trace::CurrentStream current(trace_.stream);  // events of kernels go there, too
  const WorkerThread is_worker;
  if (!measurements_.is_present()) {
    measurements_.arrive(now_ns);
    if (index_ == 0) executor_.caller_arrives();
    trace_.enter_state(WorkerState::scheduling);
  }
  if (const std::uint32_t pause = options_.pauses->load(std::memory_order_acquire); (pause & 1U) != 0) [[unlikely]]
    return rest_in_pause(pause, now_ns);
  return step_tasks(now_ns);
}

/// Ends sleep, or the way to it.
void Worker::wake_up() {
  if (!std::exchange(announced_, false)) return;
  waits_awake_ = false;
  if (executor_.queues().withdraw_idle(index_)) {
    woken_ = true;
    measurements_.count_wake();
  }
  pause_ns_ = kFirstPauseNs;
}

/// The next task, or null: also when the worker holds for a more urgent one.
Task* Worker::take_unless_holding() {
  Task* task = take();
  if (gate_ != nullptr) [[unlikely]] task = pass_memory_gate(task);
  if (task == nullptr || !hold_.begin_instead_of(*task, [this](const Task& next) { return expected_ns(next); }))
      [[likely]]
    return task;
  measurements_.count_hold();
  executor_.queues().put_back(index_, task);
  return nullptr;
}

/// Takes `task` (null: none) and the tasks that wait at the gate for memory, and returns the one to run; or null.
Task* Worker::pass_memory_gate(Task* task) {
  while (true) {
    const bool stays = task != nullptr && stays_here(*task);
    const bool is_bound = task != nullptr && !stays && is_memory_bound(*task);
    const MemoryGate::Answer answer = gate_->ask(task, is_bound, inside_gate_, stays);
    if (answer.hand_on != nullptr) executor_.queues().push_released(index_, answer.hand_on);
    if (is_bound && answer.run != task) measurements_.count_aside();
    if (answer.run != nullptr && answer.run != task)
      trace_.note_taken(*answer.run, [] { return std::optional<unsigned>(); });
    if (answer.run != nullptr && answer.run->restricted && !stays) executor_.placer()->move(*answer.run, index_);
    if (!answer.waits) return answer.run;
    task = take();
  }
}

/// Leaves the gate, since the worker rests.
void Worker::leave_memory_gate() {
  if (Task* const task = gate_->leave(inside_gate_)) executor_.queues().push_released(index_, task);
}

/// Whether no other worker may run the task, as far as the gate knows.
bool Worker::stays_here(const Task& task) const {
  return task.restricted && (executor_.placer() == nullptr || !executor_.placer()->may_move(task));
}

/// Whether the task is memory-bound, by its codelet, or by its durations here.
bool Worker::is_memory_bound(const Task& task) const {
  if (task.budgeted || task.ops->serves) return false;
  if (task.codelet->memory_bound) return *task.codelet->memory_bound;
  const auto known_ns = expected_ns(task);
  return known_ns &&
         static_cast<double>(moved_bytes(task)) >= gate_->rule().least_bytes_per_ns * static_cast<double>(*known_ns);
}

/// The next task: the one that the worker has just released, or one from the queues; or null.
Task* Worker::take() {
  ReadyQueues& queues = executor_.queues();
  if (Task* const kept = origin_.keep) {
    if (queues.may_run_at_once(index_, *kept)) {
      origin_.keep = nullptr;
      trace_.note_kept(*kept, origin_.keep_told);
      if (options_.explainer != nullptr) [[unlikely]] explain(*kept, true);
      return kept;
    }
    queue_kept();
  }
  if (feeds_) [[unlikely]] executor_.feed(index_, origin_);
  Task* const task = hold_.next();
  if (task != nullptr)
    trace_.note_taken(*task, [&]() -> const std::optional<unsigned>& { return queues.last_victim(index_); });
  if (task != nullptr && options_.explainer != nullptr) [[unlikely]] explain(*task, false);
  return task;
}

/// Explains why the worker takes `task`, unless the placer has chosen it.
void Worker::explain(const Task& task, bool kept) {
  const bool is_placed = task.restricted && executor_.placer() != nullptr;
  if (!is_placed && options_.explainer->wants(task))
    options_.explainer->taken(task, index_, kept, executor_.queues().last_victim(index_));
}

/// Queues the kept task, so that others find it.
void Worker::queue_kept() {
  Task* const task = std::exchange(origin_.keep, nullptr);
  if (task == nullptr) return;
  trace_.note_ready(*task, origin_.keep_told);
  executor_.queues().push_released(index_, task);
}

void Worker::back_to_work(std::int64_t now_ns) {
  progress_.stop();
  trace_.enter_state(WorkerState::scheduling);
  measurements_.end_idle(now_ns);
  pause_ns_ = 0;
  if (std::exchange(woken_, false)) executor_.queues().wake_next_if_work(index_);
}

std::int64_t Worker::rest(std::int64_t now_ns) {
  if (inside_gate_) [[unlikely]] leave_memory_gate();
  executor_.flush(origin_);
  const std::int64_t at_once_ns = now_ns;
  if (!measurements_.is_idle()) {
    now_ns = clock_.now_ns();  // the step may have run tasks for long since it began
    measurements_.begin_idle(now_ns);
    hand_over_durations();
    pause_ns_ = kFirstPauseNs;
  }
  std::int64_t awake_ns = 0;
  if (progress_.start()) {
    trace_.enter_state(WorkerState::progressing);
    if (poll_network() != base::IdleWork::Found::nothing_for_long) return at_once_ns;
  } else {
    measurements_.count_poll();
    awake_ns = std::max<std::int64_t>(options_.poll_for_ns - (now_ns - measurements_.idle_since_ns()), 0);
    if (awake_ns > 0) trace_.enter_state(WorkerState::polling);
    if (awake_ns > 0 && !spares_queues()) {
      pause_ns_ = std::min(pause_ns_ * 2, std::max(options_.poll_max_ns, kFirstPauseNs));
      return now_ns + pause_ns_;
    }
  }
  ReadyQueues& queues = executor_.queues();
  // A worker on hold, or with enough tasks that wait for data, may have been woken for a task that it does not take;
  // another one must take it.
  if ((hold_.is_on() || queues.stages_enough(index_)) && std::exchange(woken_, false)) queues.pass_on_wake(index_);
  queues.announce_idle(index_, awake_ns > 0);
  announced_ = true;
  if (!hold_.finds_nothing()) return at_once_ns;
  woken_ = false;  // no queue has a task, and a thread that pushes one from now on sees that this worker sleeps
  waits_awake_ = awake_ns > 0;
  if (waits_awake_) return now_ns + awake_ns;
  // 0: it does not hold.
  const std::int64_t until_ns =
      feeds_ && !hold_.is_on() ? executor_.placer()->holds_until_ns(index_) : hold_.until_ns();
  trace_.enter_state(until_ns != 0 ? WorkerState::holding : WorkerState::sleeping);
  return until_ns != 0 ? until_ns : base::kNever;
}

/// Whether adaptive polling applies. A worker on hold does not take every task, and a device's worker no shared ones,
/// so they poll as usual.
bool Worker::spares_queues() const noexcept {
  return adapts_polling_ && !hold_.is_on() && executor_.messages().load().counts().are_latency_bound();
}

/// Polls the network once.
base::IdleWork::Found Worker::poll_network() {
  if (!spares_queues()) return progress_.poll();
  ReadyQueues& queues = executor_.queues();
  const ReadyQueues::Promise promise(queues);
  const base::IdleWork::Found found = progress_.poll();
  if (!promise.pending()) return found;
  woken_ = true;
  // The other worker polls the network meanwhile.
  if (executor_.messages().load().counts().are_awaited()) queues.pass_on_wake(index_);
  return found;
}

/// Rests in a pause, once tasks that have begun have ended.
std::int64_t Worker::rest_in_pause(std::uint32_t pause, std::int64_t now_ns) {
  if (const auto again_ns = end_begun(now_ns)) return *again_ns;
  wake_up();
  progress_.stop();
  progress_.do_rest();
  hold_.end();
  if (inside_gate_) leave_memory_gate();
  queue_kept();
  executor_.flush(origin_);
  if (std::exchange(woken_, false)) executor_.queues().pass_on_wake(index_);
  if (!measurements_.is_idle()) {
    measurements_.begin_idle(clock_.now_ns());
    hand_over_durations();
  }
  trace_.enter_state(WorkerState::sleeping);
  if (rests_in_.exchange(pause, std::memory_order_acq_rel) != pause) executor_.caller().wake();
  return base::kNever;
}

void Worker::leave(std::int64_t now_ns) {
  progress_.stop();
  progress_.do_rest();
  hold_.end();
  if (inside_gate_) leave_memory_gate();
  hurry(now_ns);
  hand_over_durations();
  queue_kept();
  executor_.caller_leaves(origin_);
  executor_.flush(origin_);
  wake_up();
  if (std::exchange(woken_, false)) executor_.queues().pass_on_wake(index_);
  trace_.enter_state(WorkerState::absent);
  measurements_.leave(now_ns);
}

WorkerReport Worker::report(std::int64_t now_ns) const {
  WorkerReport report = measurements_.report(now_ns);
  report.steals = executor_.queues().steals(index_);
  if (const Placer* const placer = executor_.placer()) report.holds += placer->holds(index_);
  return report;
}

// --- tasks

bool Worker::is_present(const Task& task) const noexcept {
  if (spec_.brings_copies && !has_private_copies(task)) [[unlikely]] return false;
  if (spec_.replicas_leave) [[unlikely]] return executor_.memory().is_present(task, spec_.node);
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    Handle& handle = *slot.handle();
    if (slot.mode() == AccessMode::scratch) continue;
    if (handle.poison.any()) return false;
    if (slot.mode() == AccessMode::reduce) continue;
    if (sees_value(slot.mode()) ? !handle.valid_on(spec_.node) : !handle.replica(spec_.node).has_memory()) return false;
  }
  return true;
}

/// Whether `reduce` accesses have their private copies, if these move; for a combining task, whether the copies are in
/// main memory.
bool Worker::has_private_copies(const Task& task) const noexcept {
  if (task.ops == kCombineOps) return Memory::has_private_copies_home(*task.accesses()[0].handle());
  if (!task.special || !spec_.binds_copies || task.room.is_pinned()) return true;
  const AccessSlot* const slots = task.accesses();
  return std::none_of(slots, slots + task.access_count,
                      [](const AccessSlot& slot) { return slot.mode() == AccessMode::reduce; });
}

/// Begins a task. False: it does not run now; the flow was cancelled before it, or it waits until the ranks have agreed
/// where.
bool Worker::begin(Task& task) {
  const Cutoff::Answer answer = executor_.ask_to_begin(task, clock_.now_ns());
  if (answer != Cutoff::Answer::over) return answer == Cutoff::Answer::go;
  executor_.drop_behind_end(task);
  skip(task);
  return false;
}

/// Prepares a task. False: it does not run now; it was cancelled, or it waits for transfers.
bool Worker::prepare(Task& task) {
  const std::exception_ptr refusal = take_refusal(task);
  if (FlowFailure* cause = executor_.why_cancelled(task)) {
    const bool failed_itself = cause->id == flow_position(task);  // while its data was fetched
    if (!failed_itself) executor_.cancel(task, *cause);
    skip(task);
    return false;
  }
  try {
    check_usable();
    if (refusal != nullptr) std::rethrow_exception(refusal);
    if (spec_.binds_copies && task.special) executor_.memory().bind_private_copies(task, spec_.node);
    task.progress = static_cast<std::uint16_t>(index_);
    // Otherwise it may run and end elsewhere at once.
    const bool comes_back = executor_.queues().comes_back(index_, task);
    if (executor_.memory().acquire(task, spec_.node) == Memory::Staging::pending) {
      if (comes_back) executor_.queues().note_staging(index_);
      return false;
    }
    if (const std::exception_ptr failure_at_once = take_refusal(task)) std::rethrow_exception(failure_at_once);
  } catch (...) {
    refuse(task, std::current_exception());
    return false;
  }
  if (!task.poisoned.load(std::memory_order_relaxed)) return true;
  skip(task);
  return false;
}

/// Whether a task is ready to run. False: it does not run now, or never.
bool Worker::is_ready(Task& task) {
  if (!executor_.may_begin(task) && !begin(task)) [[unlikely]] return false;
  return (__builtin_expect(!task.poisoned.load(std::memory_order_relaxed), 1) && is_present(task)) || prepare(task);
}

/// Chooses the implementation that `task` runs here, before the trace has its start.
Durations::Choice Worker::implementation_for(const Task& task) {
  if (task.chooses) [[unlikely]] return choose_implementation(task);
  return {.implementation =
              task.restricted ? static_cast<unsigned>(task.codelet->implementation_for(spec_.device)) : 0U};
}

[[gnu::noinline]] Durations::Choice Worker::choose_implementation(const Task& task) {
  const model::Footprint footprint = footprint_of(task);
  const bool explains = options_.explainer != nullptr && options_.explainer->wants_choice(task);
  const auto known = explains ? options_.durations->known(*task.codelet, footprint, spec_.device)
                              : std::vector<Durations::Known>();
  const Durations::Choice choice = options_.durations->choose(*task.codelet, footprint, spec_.device);
  if (explains) options_.explainer->chosen(task, index_, choice, known);
  trace_.note_implementation(task, choice.implementation);
  return choice;
}

/// Passes the duration of a successful kernel to the performance models, to choices, and to a policy that looks ahead.
void Worker::learn(const Task& task, const Durations::Choice& choice, std::int64_t start_ns,
                   std::int64_t end_ns) {
  if (task.poisoned.load(std::memory_order_relaxed)) return;
  const std::int64_t duration_ns = end_ns - start_ns;
  if (durations_ != nullptr) durations_->add(task, choice.implementation, duration_ns, end_ns);
  Placer* const placer = task.restricted ? executor_.placer() : nullptr;
  if (placer == nullptr && !task.chooses) return;
  options_.durations->add(task.codelet->name, footprint_of(task), spec_.device, choice.implementation,
                          static_cast<double>(duration_ns));
  if (placer != nullptr && choice.is_usual) placer->learn(task, spec_.device, choice.implementation, duration_ns);
}

/// Calls the kernel; `implementation` counts if the codelet has a choice.
void Worker::invoke(Task& task, unsigned implementation) {
  KernelCall call{task, index_, spec_.node, 0, nullptr};
  if (counters_ != nullptr) [[unlikely]] counters_->begin(trace_.stream);
  try {
    if (__builtin_expect(task.restricted || task.chooses, 0))
      call.implementation =
          task.chooses ? implementation : static_cast<unsigned>(task.codelet->implementation_for(spec_.device));
    if (__builtin_expect(task.special, 0)) private_memory_.invoke(call, executor_.memory());
    else task.ops->invoke(call);
    succeed(task);
  } catch (...) {
    fail(task, std::current_exception());
  }
  if (task.special && executor_.memory().is_limited(spec_.node)) [[unlikely]] private_memory_.release_scratch();
  if (counters_ != nullptr) [[unlikely]] counters_->end();
}

void Worker::succeed(Task& task) {
  if (task.extra != nullptr && task.extra->callback) task.extra->callback();
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    if (!makes_value(slot.mode())) continue;
    Memory::note_written(*slot.handle(), spec_.node);
    // A commuting task keeps the mark of a neighbour that failed.
    if (__builtin_expect(slot.handle()->poison.any(), 0) && slot.mode() != AccessMode::commute)
      slot.handle()->poison.clear();
  }
}

void Worker::fail(Task& task, const std::exception_ptr& exception) {
  trace_.note_failed(task);
  std::string what = "an exception that is no std::exception";
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  executor_.poison(task, *executor_.failures().add(flow_position(task), exception, describe_failure(task, what)));
}

void Worker::refuse(Task& task, const std::exception_ptr& failure) {
  fail(task, failure);
  skip(task);
}

void Worker::skip(Task& task) {
  trace_.note_cancelled(task);
  if (task.ops->skip != nullptr) task.ops->skip(task);
  if (task.ops->destroy_values != nullptr && !task.recorded) task.ops->destroy_values(task);
  end(task);
}

void Worker::finish(Task& task) {
  trace_.note_ended(task);
  if (counters_ != nullptr) [[unlikely]] counters_->write(task, trace_.stream);
  if (task.ops->destroy_values != nullptr && !task.recorded) task.ops->destroy_values(task);
  end(task);
}

void Worker::end(Task& task) {
  progress_.leave_work_of([&] { executor_.end(task, origin_); });
}

}  // namespace tandem::runtime
