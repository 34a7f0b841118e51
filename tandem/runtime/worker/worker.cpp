// tandem/runtime/worker/worker.cpp: the steps of a worker.
#include "tandem/runtime/worker/worker.hpp"

#include <algorithm>
#include <mutex>
#include <new>

#include "tandem/runtime/task/describe.hpp"
#include "tandem/trace/current.hpp"

namespace tandem::runtime {

namespace {
constexpr std::int64_t kFirstPauseNs = 60;
/// Behind a kernel as short as this, the next one's start is said to be its end: a second look at the clock would take longer
/// than what lies between, and a good part of the kernel.
constexpr std::uint64_t kShortTicks = 512;

using trace::Type;
using trace::WorkerState;
}  // namespace

Worker::Worker(unsigned index, const WorkerSpec& spec, const WorkerOptions& options, Executor& executor,
               const clock::Clock& clock, base::Log& log)
    : index_(index), spec_(spec), options_(options), executor_(executor), clock_(clock), log_(log) {
  origin_.kind = Origin::Kind::worker;
  origin_.trace = &trace_;
  origin_.worker = index;
}

std::int64_t Worker::step(std::int64_t now_ns) {
  const trace::CurrentStream current(trace_);  // what kernels tell goes there, too
  if (present_since_ns_.get() < 0) {
    present_since_ns_.set(now_ns);
    enter_state(WorkerState::scheduling);
  }
  if (emulated_ != nullptr) {
    if (now_ns < emulated_until_ns_) return emulated_until_ns_;
    end_emulated();
  }
  ReadyQueues& queues = executor_.queues();
  if (announced_) {
    announced_ = false;
    woken_ = queues.withdraw_idle(index_) || woken_;
    pause_ns_ = 0;
  }
  for (unsigned count = 0; count < options_.tasks_per_step; ++count) {
    Task* task = origin_.keep;
    origin_.keep = nullptr;
    if (task != nullptr && !queues.may_run_at_once(index_, *task)) {
      queues.push_released(index_, task);
      task = nullptr;
    }
    if (task == nullptr) {
      task = next();
      if (trace_.any_on<Type::task_popped, Type::task_stolen>() && task != nullptr) [[unlikely]] tell_popped(*task);
    }
    if (task != nullptr && holds(*task)) [[unlikely]] {
      queues.put_back(index_, task);
      task = nullptr;
    }
    if (task == nullptr) return rest(now_ns);
    if (owes_) [[unlikely]] tend();
    if (idle_since_ns_.get() >= 0 || woken_) back_to_work(now_ns);
    if (!run(*task)) return emulated_until_ns_;
  }
  // The driver may look elsewhere now: what this worker keeps must be where others find it.
  if (Task* task = std::exchange(origin_.keep, nullptr)) queues.push_released(index_, task);
  return now_ns;
}

Task* Worker::next() {
  ReadyQueues& queues = executor_.queues();
  if (hold_until_ns_ == 0) [[likely]] return queues.pop(index_);
  const bool still_comes = executor_.expected().contains(hold_for_);  // until it is ready: so look for it after this
  if (Task* task = queues.pop_above(index_, hold_above_)) {
    end_hold();
    return task;
  }
  if (still_comes && clock_.now_ns() < hold_until_ns_) return nullptr;
  end_hold();
  return queues.pop(index_);
}

/// Whether it waits for something more urgent instead of running the task.
bool Worker::holds(const Task& task) {
  ExpectedTasks& expected = executor_.expected();
  ReadyQueues& queues = executor_.queues();
  if (!expected.any()) [[likely]] return false;
  if (task.ops->serves || task.restricted || spec_.device != DeviceKind::cpu || queues.somebody_idle()) return false;
  const auto task_ns = expected_ns(task);
  if (!task_ns) return false;
  const std::int64_t now_ns = clock_.now_ns();
  const auto one = expected.claim([&](const ExpectedTasks::Expected& known) {
    return known.due_ns > now_ns && queues.waits(task, *task_ns, known.priority, known.due_ns - now_ns);
  });
  if (!one) return false;
  hold_until_ns_ = one->due_ns + (one->due_ns - now_ns) / 4;
  hold_above_ = task.priority;
  hold_for_ = one->number;
  holds_.add(1);
  return true;
}

void Worker::end_hold() {
  if (std::exchange(hold_until_ns_, 0) != 0) executor_.expected().unclaim();
}

/// Looked at after `announce_idle`.
bool Worker::finds_nothing() const noexcept {
  ReadyQueues& queues = executor_.queues();
  return hold_until_ns_ == 0 ? queues.looks_empty(index_) : queues.looks_empty_above(index_, hold_above_);
}

void Worker::back_to_work(std::int64_t now_ns) {
  if (attends_) stop_attending();
  enter_state(WorkerState::scheduling);
  note_idle_until(now_ns);
  pause_ns_ = 0;
  if (std::exchange(woken_, false)) executor_.queues().wake_next_if_work(index_);
}

void Worker::note_idle_until(std::int64_t now_ns) {
  if (idle_since_ns_.get() >= 0) idle_ns_.add(static_cast<double>(now_ns - idle_since_ns_.get()));
  idle_since_ns_.set(-1);
}

std::int64_t Worker::rest(std::int64_t now_ns) {
  executor_.flush(origin_);
  const std::int64_t at_once_ns = now_ns;
  if (idle_since_ns_.get() < 0) {
    now_ns = clock_.now_ns();  // the step may have run tasks for long since it began
    idle_since_ns_.set(now_ns);
    pause_ns_ = kFirstPauseNs;
  }
  if (attend()) {
    enter_state(WorkerState::progressing);
    if (options_.attendance->look() != base::IdleWork::Found::nothing_for_long) return at_once_ns;
  } else if (now_ns - idle_since_ns_.get() < options_.poll_for_ns) {
    enter_state(WorkerState::polling);
    pause_ns_ = std::min(pause_ns_ * 2, std::max(options_.poll_max_ns, kFirstPauseNs));
    return now_ns + pause_ns_;
  }
  ReadyQueues& queues = executor_.queues();
  // What it was woken for may be for another, while it waits for something else.
  if (hold_until_ns_ != 0 && std::exchange(woken_, false)) queues.pass_on_wake();
  queues.announce_idle(index_);
  announced_ = true;
  if (!finds_nothing()) return at_once_ns;
  enter_state(hold_until_ns_ == 0 ? WorkerState::sleeping : WorkerState::holding);
  woken_ = false;  // nothing anywhere, and who pushes from now on sees that this worker sleeps
  return hold_until_ns_ == 0 ? base::kNever : hold_until_ns_;
}

/// True: this worker attends, and others need not tell the network that something is to be done.
bool Worker::attend() {
  base::Attendance* const attendance = options_.attendance;
  if (attendance == nullptr) return false;
  if (attends_ && attendance->over()) stop_attending();
  if (!attends_) attends_ = attendance->enter();
  if (attends_) owes_ = false;  // to look is to tend
  else if (owes_) tend();
  return attends_;
}

void Worker::stop_attending() {
  options_.attendance->leave();
  attends_ = false;
}

void Worker::tend() {
  owes_ = false;
  options_.attendance->tend();
}

void Worker::leave(std::int64_t now_ns) {
  if (attends_) stop_attending();
  if (owes_) tend();
  end_hold();
  if (emulated_ != nullptr) end_emulated();  // early: the caller has other things to do
  if (Task* task = std::exchange(origin_.keep, nullptr)) executor_.queues().push_released(index_, task);
  executor_.flush(origin_);
  bool chosen = std::exchange(woken_, false);
  if (std::exchange(announced_, false)) chosen = executor_.queues().withdraw_idle(index_) || chosen;
  if (chosen) executor_.queues().pass_on_wake();
  note_idle_until(now_ns);
  enter_state(WorkerState::absent);
  if (present_since_ns_.get() >= 0) total_ns_.add(static_cast<double>(now_ns - present_since_ns_.get()));
  present_since_ns_.set(-1);
}

bool Worker::present(const Task& task) const noexcept {
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    Handle& handle = *slot.handle();
    if (slot.mode() == AccessMode::scratch) continue;
    if (handle.poison.any()) return false;
    if (slot.mode() == AccessMode::reduce) continue;
    if (sees_value(slot.mode()) ? !handle.valid_on(spec_.node) : handle.replica(spec_.node).pointer == nullptr) return false;
  }
  return true;
}

/// False: the task does not run now; the flow was cancelled before it, or it waits until the ranks know where.
bool Worker::begin(Task& task) {
  const Cutoff::Answer answer = executor_.ask_to_begin(task, clock_.now_ns());
  if (answer != Cutoff::Answer::over) return answer == Cutoff::Answer::go;
  executor_.pass_over(task);
  skip(task);
  return false;
}

/// False: the task does not run now; it was cancelled, or it waits for transfers.
bool Worker::prepare(Task& task) {
  if (FlowFailure* cause = executor_.why_cancelled(task)) {
    executor_.cancel(task, *cause);
    skip(task);
    return false;
  }
  try {
    task.progress = static_cast<std::uint16_t>(index_);
    return executor_.memory().acquire(task, spec_.node) == Memory::Staging::ready;
  } catch (...) {
    fail(task);
    skip(task);
    return false;
  }
}

void Worker::skip(Task& task) {
  trace_.emit<Type::task_cancelled>(flow_position(task));
  at_instant_ = false;
  if (task.ops->skip != nullptr) task.ops->skip(task);
  if (task.ops->destroy_values != nullptr && !task.recorded) task.ops->destroy_values(task);
  end(task);
}

/// What ending the task will write to is on its way while the kernel runs: the lines of its successors, which another worker or
/// the submitting thread wrote last. A link stands in its successor, behind the line that holds the count.
static void prefetch_successors(const Task& task) noexcept {
  if (task.recorded) {
    const RecordedPart& part = *task.recording;
    const std::uint32_t count = std::min(part.successor_count, 8U);
    for (std::uint32_t i = 0; i < count; ++i) __builtin_prefetch(part.successors[i], 1);
  } else if (const Link* link = task.successors.peek()) {
    __builtin_prefetch(link, 1);
    __builtin_prefetch(reinterpret_cast<const char*>(link) - 64, 1);
  }
}

/// False: the task takes a modelled time, until `emulated_until_ns_`.
bool Worker::run(Task& task) {
  if (!executor_.may_begin(task) && !begin(task)) [[unlikely]] return true;
  if ((__builtin_expect(task.poisoned.load(std::memory_order_relaxed), 0) || !present(task)) && !prepare(task)) return true;
  running_.store(&task, std::memory_order_release);
  prefetch_successors(task);
  if (trace_.any_on<Type::task_started>()) [[unlikely]] tell_started(task);
  const bool expected = expects();
  if (options_.timed || expected) {
    const std::int64_t start_ns = clock_.now_ns();
    running_since_ns_.store(start_ns, std::memory_order_relaxed);
    if (options_.emulation != nullptr && emulate(task, start_ns)) {
      if (expected) tell_expected(task, emulated_until_ns_ - start_ns);
      return false;
    }
    if (expected) {
      if (const auto known = durations_.find(task.codelet); known != durations_.end())
        tell_expected(task, static_cast<std::int64_t>(known->second.mean_ns));
    }
    invoke(task);
    measure(task, start_ns, clock_.now_ns());
  } else {
    invoke(task);
  }
  finish(task);
  return true;
}

/// Tells those that start something when the task has ended. Its successors wait for it, so they outlive this walk.
void Worker::tell_expected(const Task& task, std::int64_t in_ns) {
  constexpr unsigned kMostLooked = 16;
  if (task.recorded) return;
  unsigned looked = 0;
  for (const Link* link = task.successors.peek(); link != nullptr && looked < kMostLooked; link = link->next, ++looked) {
    const Task& next = *link->task();
    if (next.kind == TaskKind::event && next.extra != nullptr && next.extra->on_expected != nullptr)
      next.extra->on_expected(next.extra->context, in_ns);
  }
}

void Worker::end(Task& task) {
  const base::IdleWork* const work = options_.attendance != nullptr ? options_.attendance->work() : nullptr;
  if (work == nullptr) return executor_.end(task, origin_);
  const base::IdleWork::Promise promise(work);
  executor_.end(task, origin_);
  owes_ |= promise.pending();
}

void Worker::finish(Task& task) {
  if (trace_.any_on<Type::task_ended, Type::task_ready, Type::task_pushed>()) [[unlikely]] tell_ended(task);
  running_.store(nullptr, std::memory_order_relaxed);
  if (task.ops->destroy_values != nullptr && !task.recorded) task.ops->destroy_values(task);
  end(task);
}

// --- the trace

void Worker::tell_popped(const Task& task) {
  if (!at_instant_) trace_.set_instant(trace_.read_clock());
  at_instant_ = true;
  const std::uint64_t steals = executor_.queues().steals(index_);
  if (std::exchange(steals_told_, steals) != steals) trace_.append<Type::task_stolen>(flow_position(task));
  else trace_.append<Type::task_popped>(flow_position(task));
}

void Worker::tell_started(const Task& task) {
  if (!at_instant_) trace_.set_instant(trace_.read_clock());
  started_ticks_ = trace_.instant();
  trace_.append<Type::task_started>(flow_position(task));
}

void Worker::tell_ended(const Task& task) {
  const std::uint64_t ticks = trace_.read_clock();
  trace_.set_instant(ticks);
  at_instant_ = ticks - started_ticks_ < kShortTicks;
  trace_.append<Type::task_ended>(flow_position(task));
}

bool Worker::emulate(Task& task, std::int64_t start_ns) {
  const auto duration_ns = emulated_ns(task);
  if (!duration_ns) return false;
  emulated_ = &task;
  emulated_until_ns_ = start_ns + *duration_ns;
  return true;
}

/// Nothing: it runs.
std::optional<std::int64_t> Worker::emulated_ns(const Task& task) const {
  if (task.ops->serves) return {};
  Shape shapes[UINT8_MAX];
  for (unsigned i = 0; i < task.access_count; ++i) {
    if (task.accesses()[i].mode() == AccessMode::reduce) return {};
    shapes[i] = task.accesses()[i].handle()->shape;
  }
  return (*options_.emulation)({task.codelet->name, {shapes, task.access_count}});
}

/// How long it will run here, if that is known.
std::optional<std::int64_t> Worker::expected_ns(const Task& task) const {
  if (options_.emulation != nullptr)
    if (const auto duration_ns = emulated_ns(task)) return duration_ns;
  const auto known = durations_.find(task.codelet);
  if (known == durations_.end()) return {};
  return static_cast<std::int64_t>(known->second.mean_ns);
}

void Worker::end_emulated() {
  Task& task = *std::exchange(emulated_, nullptr);
  try {
    succeed(task);
  } catch (...) {
    fail(task);
  }
  measure(task, running_since_ns_.load(std::memory_order_relaxed), clock_.now_ns());
  finish(task);
}

void Worker::invoke(Task& task) {
  KernelCall call{task, index_, spec_.node, 0, nullptr};
  try {
    if (__builtin_expect(task.restricted, 0))
      call.implementation = static_cast<unsigned>(task.codelet->implementation_for(spec_.device));
    if (__builtin_expect(task.special, 0)) invoke_special(task, call);
    else task.ops->invoke(call);
    succeed(task);
  } catch (...) {
    fail(task);
  }
}

void Worker::succeed(Task& task) {
  if (task.extra != nullptr && task.extra->callback) task.extra->callback();
  note_results(task);
}

void Worker::note_results(Task& task) noexcept {
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    if (!makes_value(slot.mode())) continue;
    Memory::note_written(*slot.handle(), spec_.node);
    // A commuting task leaves the mark of a neighbour that failed.
    if (__builtin_expect(slot.handle()->poison.any(), 0) && slot.mode() != AccessMode::commute) slot.handle()->poison.clear();
  }
}

void Worker::fail(Task& task) {
  trace_.emit<Type::task_failed>(flow_position(task));
  const std::exception_ptr exception = std::current_exception();
  std::string what = "an exception that is no std::exception";
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  executor_.poison(task, *executor_.failures().add(flow_position(task), exception, describe(task) + ": " + what));
}

void Worker::invoke_special(Task& task, KernelCall& call) {
  private_memory_.assign(task.access_count, nullptr);
  scratch_.resize(std::max<std::size_t>(scratch_.size(), task.access_count));
  for (unsigned i = 0; i < task.access_count; ++i) {
    const AccessSlot& slot = task.accesses()[i];
    if (slot.mode() != AccessMode::scratch) continue;
    const Handle& handle = *slot.handle();
    scratch_[i].resize(std::max<std::size_t>(handle.shape.bytes() + 64, scratch_[i].size()));
    void* start = scratch_[i].data();
    std::size_t room = scratch_[i].size();
    private_memory_[i] = std::align(64, handle.shape.bytes(), start, room);
  }
  call.private_memory = private_memory_.data();
  try {
    for (unsigned i = 0; i < task.access_count; ++i)
      if (task.accesses()[i].mode() == AccessMode::reduce)
        private_memory_[i] = executor_.memory().take_partial(*task.accesses()[i].handle());
    task.ops->invoke(call);
  } catch (...) {
    give_back_private(task, false);
    throw;
  }
  give_back_private(task, true);
}

void Worker::give_back_private(Task& task, bool filled) {
  for (unsigned i = 0; i < task.access_count; ++i)
    if (task.accesses()[i].mode() == AccessMode::reduce && private_memory_[i] != nullptr)
      Memory::give_back_partial(*task.accesses()[i].handle(), private_memory_[i], filled);
}

void Worker::measure(const Task& task, std::int64_t start_ns, std::int64_t end_ns) {
  durations_[task.codelet].add(static_cast<double>(end_ns - start_ns));
  busy_ns_.add(static_cast<double>(end_ns - start_ns));
  tasks_.add(1);
  if (options_.timeline) timeline_.push_back({&task.codelet->name, flow_position(task), index_, start_ns, end_ns});
}

WorkerReport Worker::report(std::int64_t now_ns) const {
  WorkerReport report;
  report.tasks = tasks_.get();
  report.busy_ns = busy_ns_.get();
  report.idle_ns = idle_ns_.get();
  report.total_ns = total_ns_.get();
  report.steals = executor_.queues().steals(index_);
  report.holds = holds_.get();
  if (const auto since_ns = present_since_ns_.get(); since_ns >= 0) report.total_ns += static_cast<double>(now_ns - since_ns);
  if (const auto since_ns = idle_since_ns_.get(); since_ns >= 0) report.idle_ns += static_cast<double>(now_ns - since_ns);
  return report;
}

}  // namespace tandem::runtime
