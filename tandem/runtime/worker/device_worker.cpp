// tandem/runtime/worker/device_worker.cpp: the steps of a worker with a device, and what happens when the device fails.
#include "tandem/runtime/worker/device_worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/worker/expected_end.hpp"

namespace tandem::runtime {

namespace {

/// A stretch gets longer while the posted tasks take about this long: a more urgent task waits for them.
constexpr std::int64_t kAheadNs = 200'000;

/// Every replay cuts its stretches into batches behind the same tasks, so that batches come again wherever a stretch
/// begins. One task in eight ends a batch: the tasks of a stretch may be any distance apart in the recording, and
/// multiples of the golden ratio are even at each distance.
bool ends_batch(const Task& task) { return task.recorded && task.recording->index * 2'654'435'769U < 1U << 29; }

/// Calls `visit(task)` for the first tasks that wait for `before`, which has not ended.
template <class Visit>
void for_each_successor(const Task& before, const Visit& visit) {
  unsigned left = 16;
  if (before.recorded)
    for (std::uint32_t i = 0; i < before.recording->successor_count && left != 0; ++i, --left)
      visit(*before.recording->successors[i]);
  for (const Link* link = before.successors.peek(); link != nullptr && left != 0; link = link->next, --left)
    visit(*link->task());
}

}  // namespace

// --- steps

std::int64_t DeviceWorker::step_tasks(std::int64_t now_ns) {
  if (!in_flight_.empty()) collect(now_ns);
  wake_up();
  for (unsigned count = 0; count < options_.tasks_per_step && !is_paused(); ++count)
    if (!go_on(now_ns)) {
      if (in_flight_.empty()) return rest(now_ns);
      post_behind();
      if (!in_flight_.empty()) return rest_beside_device();
      break;  // the device was lost
    }
  queue_kept();
  return now_ns;
}

/// Goes one task further; false: there is nothing to do before something ends or becomes ready.
bool DeviceWorker::go_on(std::int64_t now_ns) {
  if (next_ != nullptr && !in_flight_.full()) {
    launch(*std::exchange(next_, nullptr));
    return true;
  }
  if (!takes_tasks()) return false;
  Task* const task = take_unless_holding();
  if (task == nullptr) return false;
  work_comes(now_ns);
  if (lost_ != nullptr) {
    if (executor_.may_begin(*task) || begin(*task)) prepare(*task);
  } else if (is_ready(*task)) {
    if (in_flight_.full()) next_ = task;
    else launch(*task);
  }
  return true;
}

/// Whether there is a place for a task, or its data can be fetched meanwhile.
bool DeviceWorker::takes_tasks() const noexcept {
  return !in_flight_.full() || (next_ == nullptr && spec_.node != 0 && !executor_.queues().stages_enough(index_));
}

/// Rests while tasks are in flight and there is nothing else to do.
std::int64_t DeviceWorker::rest_beside_device() {
  queue_kept();
  executor_.flush(origin_);
  const std::int64_t now_ns = clock_.now_ns();
  const std::int64_t poll_ns = collect(now_ns);
  if (!ended_.empty()) return now_ns;
  ReadyQueues& queues = executor_.queues();
  const bool takes = takes_tasks();
  // The worker may have been woken for a task that it does not take; another one must take it.
  if ((!takes || queues.stages_enough(index_)) && std::exchange(woken_, false)) queues.pass_on_wake(index_);
  if (!takes) return poll_ns;
  queues.announce_idle(index_);
  announced_ = true;
  if (!hold_.finds_nothing()) return now_ns;
  woken_ = false;
  return poll_ns;
}

/// Ends the tasks that have ended on the device (`ended_`). Returns when to poll again.
std::int64_t DeviceWorker::collect(std::int64_t now_ns) {
  ended_.clear();
  const std::int64_t next_ns = device_->poll(now_ns, ended_);
  for (const Device::Ended& ended : ended_) {
    if (lost_ != nullptr) break;
    complete(ended);
  }
  return next_ns;
}

std::optional<std::int64_t> DeviceWorker::end_begun(std::int64_t now_ns) {
  if (in_flight_.empty()) return {};
  const std::int64_t poll_ns = collect(now_ns);  // `kNever` where the device wakes the worker
  return in_flight_.empty() ? std::nullopt : std::optional(poll_ns);
}

void DeviceWorker::hurry(std::int64_t now_ns) {
  device_->hurry();
  collect(now_ns);
}

// --- tasks

/// Expected duration of the task here, if known.
std::optional<std::int64_t> DeviceWorker::expected_ns(const Task& task) const {
  try {
    if (const auto known_ns = device_->expected_ns(task)) return known_ns;
  } catch (...) {  // thrown by the program's model of durations
    return {};  // the task fails when it runs
  }
  return measurements_.mean_ns(task.codelet);
}

void DeviceWorker::launch(Task& task) {
  executor_.take_refusal(task);  // its data has come nevertheless
  const std::int64_t now_ns = clock_.now_ns();
  const Durations::Choice choice = implementation_for(task);
  if (in_flight_.empty()) {
    measurements_.begin_busy(now_ns);
    if (options_.metered) [[unlikely]] measurements_.begin_kernel(task.codelet, now_ns);
  }
  DeviceTask& launched = in_flight_.take(task, choice, executor_.memory(), now_ns);
  trace_oldest();
  if (expects())
    if (const auto duration_ns = expected_ns(task)) report_expected_end(task, *duration_ns);
  post(launched, now_ns);
}

void DeviceWorker::post(DeviceTask& launched, std::int64_t now_ns) {
  const unsigned place = launched.place();
  try {
    if (device_->launch(launched, now_ns) == Device::Launched::posted) return;
  } catch (...) {
    return complete({.place = place, .failure = std::current_exception()});
  }
  complete({.place = place});
}

/// Makes stretches longer, since nothing else is to be done.
void DeviceWorker::post_behind() {
  if (options_.stretch == 1 || in_flight_.empty() || next_ != nullptr || lost_ != nullptr || hold_.is_on()) return;
  if (!executor_.queues().looks_empty(index_) || executor_.queues().stages_enough(index_)) return;
  for (unsigned lane = 0; lane < in_flight_.lane_count() && lost_ == nullptr; ++lane)
    while (lengthen(lane)) continue;
  if (lost_ == nullptr) device_->flush();
}

/// Makes a stretch longer by one batch; false: that is all for now.
bool DeviceWorker::lengthen(unsigned lane) {
  const std::size_t count = in_flight_.lane(lane).size();
  const bool is_known = usual_ns_ != 0;
  if (count > 1 && (!is_known || static_cast<std::int64_t>(count) * usual_ns_ > kAheadNs)) return false;
  unsigned batch = is_known ? std::min(device_->batch(), std::max(options_.stretch / 2, 1U)) : 1;
  if (batch * usual_ns_ > kAheadNs / 2) batch = 1;  // kernels of that length hide the cost of a launch
  if (count + batch > options_.stretch) return false;
  for (unsigned i = 0; i < batch && !in_flight_.lane(lane).empty(); ++i) {
    const std::int64_t now_ns = clock_.now_ns();
    Task* const task = next_of_stretch(in_flight_.lane(lane).back(), now_ns);
    if (task == nullptr) return false;
    const bool is_last = ends_batch(*task);
    // The end of the task before it counts it down, without making it ready.
    task->waits.store(2, std::memory_order_relaxed);
    task->progress = static_cast<std::uint16_t>(index_);
    measurements_.count_behind();
    post(in_flight_.take_behind(lane, *task, implementation_for(*task), executor_.memory(), now_ns), now_ns);
    if (is_last) break;
  }
  return !in_flight_.lane(lane).empty();
}

/// The most urgent task that can be posted behind the one at place `last`, with memory pinned; or null.
Task* DeviceWorker::next_of_stretch(unsigned last, std::int64_t now_ns) {
  Task& before = in_flight_.at(last).task();
  if (in_flight_.run(last).ended || before.poisoned.load(std::memory_order_relaxed)) return nullptr;
  if (!before.restricted) return nullptr;  // under an emulation, any core runs it
  if (before.extra->callback) return nullptr;  // it comes before the kernels of tasks that wait for this one
  Task* next = nullptr;
  for_each_successor(before, [&](Task& task) {
    // With a count of one no other thread changes the task.
    if (task.waits.load(std::memory_order_acquire) != 1 || (next != nullptr && task.priority <= next->priority)) return;
    const bool is_plain =
        task.kind == TaskKind::kernel && task.restricted && !task.special && !task.chooses && !task.ops->serves;
    if (is_plain && !task.poisoned.load(std::memory_order_relaxed) && executor_.stays_on(task, before, index_))
      next = &task;
  });
  if (next == nullptr) return nullptr;
  const std::vector<unsigned>& lane = in_flight_.lane(last % in_flight_.lane_count());
  const Task* const one_before = lane.size() > 1 ? &in_flight_.at(lane[lane.size() - 2]).task() : nullptr;
  if (!stays_if_it_fails(before, one_before)) return nullptr;
  const bool learns = durations_ != nullptr || executor_.placer() != nullptr;
  if (learns && !is_timed_) return nullptr;  // the duration of each of them would not be known
  try {
    if (!device_->runs_behind(in_flight_.at(last), *next)) return nullptr;
  } catch (...) {  // thrown by the program's model of durations
    return nullptr;
  }
  if (!executor_.memory().acquire_behind(*next, before, spec_.node)) return nullptr;
  if (executor_.may_begin_behind(*next, now_ns)) return next;
  executor_.memory().give_back(*next, spec_.node);
  return nullptr;
}

/// Whether `task`, which is in flight behind `before` or behind nothing, could not run elsewhere if its device broke
/// it: no other worker can, or it changes data that is valid only here.
bool DeviceWorker::stays_if_it_fails(Task& task, const Task* before) const noexcept {
  if (task.extra->group->members.size() == 1 && task.extra->group->processors == nullptr) return true;
  const std::uint32_t elsewhere = ~(Handle::kMoving | 1U << spec_.node);
  const AccessSlot* const slots = task.accesses();
  return std::any_of(slots, slots + task.access_count, [&](const AccessSlot& slot) {
    if (slot.alias() || !sees_value(slot.mode()) || !makes_value(slot.mode()) || slot.handle()->private_copy != nullptr)
      return false;
    if ((slot.handle()->valid.load(std::memory_order_acquire) & elsewhere) == 0) return true;
    return before != nullptr &&
           std::any_of(before->accesses(), before->accesses() + before->access_count, [&](const AccessSlot& written) {
             return written.handle() == slot.handle() && makes_value(written.mode());
           });
  });
}

/// The first task of a lane, which was posted behind another one, runs from now on.
void DeviceWorker::come_to_front(unsigned lane) {
  Task& task = in_flight_.at(in_flight_.lane(lane).front()).task();
  trace_.note_ready(task, false);
  if (expects())
    if (const auto duration_ns = expected_ns(task)) report_expected_end(task, *duration_ns);
}

/// Whether the task has begun behind another one that has failed, so that it does not count.
bool DeviceWorker::is_called_off(const Task& task) const noexcept {
  if (task.poisoned.load(std::memory_order_relaxed)) return true;
  const AccessSlot* const slots = task.accesses();
  return std::any_of(slots, slots + task.access_count,
                     [](const AccessSlot& slot) { return slot.handle()->poison.any(); });
}

/// In the trace a device runs one task after the other, in the order of launches: each starts when the one before it
/// has ended.
void DeviceWorker::trace_oldest() {
  if (in_flight_.empty()) return;
  const unsigned place = in_flight_.oldest();
  const Task& task = in_flight_.at(place).task();
  if (in_flight_.run(place).is_behind && is_called_off(task)) return;
  if (!std::exchange(in_flight_.run(place).is_traced, true)) trace_.note_started(task);
}

void DeviceWorker::complete(const Device::Ended& ended) {
  TANDEM_ASSERT(in_flight_.has(ended.place));  // the device reports each of its tasks once
  const auto look = [](const std::exception_ptr& failure) {
    return failure != nullptr ? look_at(failure) : DeviceFailure();
  };
  if (const DeviceFailure failure = look(ended.failure); failure.is_devices && failure.effect == DeviceEffect::lost)
    return lose_device(ended.failure, failure);
  in_flight_.run(ended.place).ended = ended;
  const std::vector<unsigned>& lane = in_flight_.lane(in_flight_.at(ended.place).lane());
  while (!lane.empty() && in_flight_.run(lane.front()).ended) {
    const Device::Ended first = *in_flight_.run(lane.front()).ended;
    end_run(first, look(first.failure));
  }
}

/// Ends the first task of its lane, which has ended, or goes elsewhere.
void DeviceWorker::end_run(const Device::Ended& ended, const DeviceFailure& failure) {
  DeviceTask& place = in_flight_.at(ended.place);
  Task& task = place.task();
  const bool goes_elsewhere = failure.is_devices && !in_flight_.has_behind(ended.place);
  const InFlight::Run run = in_flight_.leave(ended.place);
  if (task.special && executor_.memory().is_limited(spec_.node)) place.release_scratch();
  const std::int64_t now_ns = clock_.now_ns();
  const std::int64_t since_ns =
      ended.kernel_ns > 0 ? now_ns - ended.kernel_ns : std::max(run.launched_ns, ended_at_ns_);
  const std::int64_t took_ns = std::max<std::int64_t>(now_ns - since_ns, 1);
  usual_ns_ = usual_ns_ == 0 ? took_ns : std::max<std::int64_t>(usual_ns_ + (took_ns - usual_ns_) / 4, 1);
  is_timed_ = ended.kernel_ns > 0;
  ended_at_ns_ = now_ns;
  if (in_flight_.empty()) measurements_.end_busy(now_ns);
  FlowFailure* const cause = run.is_behind && is_called_off(task) ? executor_.why_cancelled(task) : nullptr;
  if (cause != nullptr) {
    executor_.cancel(task, *cause);
    skip(task);
  } else if (goes_elsewhere && may_fall_back(task, failure.effect != DeviceEffect::refused)) {
    if (run.is_traced) trace_.note_ended(task);
    trace_oldest();
    return fall_back(task, failure.what);
  } else {
    if (!run.is_traced) trace_.note_started(task);
    if (ended.failure != nullptr) {
      fail(task, failure.is_devices ? named(task, ended.failure, failure) : ended.failure);
    } else {
      try {
        succeed(task);
      } catch (...) {
        fail(task, std::current_exception());
      }
    }
    if (options_.timed || expects()) measurements_.add_duration(task, since_ns, now_ns);
    if (run.is_alone || is_timed_) learn(task, run.choice, since_ns, now_ns);
    finish(task);
  }
  if (options_.metered && !in_flight_.empty()) [[unlikely]]
    measurements_.begin_kernel(in_flight_.at(in_flight_.oldest()).task().codelet, now_ns);
  if (!in_flight_.lane(place.lane()).empty()) come_to_front(place.lane());
  trace_oldest();
}

// --- failures of the device

/// Refuses `task`, which does not run here, since `failure` came before its launch.
void DeviceWorker::refuse(Task& task, const std::exception_ptr& given) {
  notice_loss();
  const std::exception_ptr failure = lost_ != nullptr ? lost_ : given;
  const DeviceFailure look = look_at(failure);
  if (look.is_devices && may_fall_back(task, false)) return fall_back(task, look.what);
  fail(task, look.is_devices ? named(task, failure, look) : failure);
  skip(task);
}

/// Whether another worker can run `task`. `had_begun`: what it writes is undefined here, and is dropped if the answer
/// is yes.
bool DeviceWorker::may_fall_back(Task& task, bool had_begun) {
  return executor_.has_other(task, index_) && (!had_begun || executor_.memory().drop_damaged(task, spec_.node));
}

/// Gives `task` to other workers, to which it belongs when this returns.
void DeviceWorker::fall_back(Task& task, const std::string& why) {
  measurements_.count_fallback();
  options_.log->warn("{}: {} could not run it, and another worker does: {}", describe(task), device_->name(), why);
  executor_.memory().give_back(task, spec_.node);
  if (spec_.binds_copies && task.special) executor_.memory().return_private_copies(task, Memory::CopyFate::unchanged);
  executor_.reroute(task, index_, origin_);
}

/// The failure, with the names of the task and the device.
std::exception_ptr DeviceWorker::named(const Task& task, const std::exception_ptr& failure,
                                       const DeviceFailure& look) const {
  try {
    std::rethrow_exception(failure);
  } catch (const DeviceError&) {
    return std::make_exception_ptr(
        DeviceError(look.effect, fmt::format("{} on {}: {}", describe(task), device_->name(), look.what)));
  } catch (...) {
    return failure;  // it names the data and the memory
  }
}

/// Looks whether a copy has found that the device is lost; a failed copy for one of its tasks may also be another
/// device's.
void DeviceWorker::notice_loss() {
  if (lost_ != nullptr) return;
  if (const std::exception_ptr loss = executor_.memory().why_lost(spec_.node)) lose_device(loss, look_at(loss));
}

void DeviceWorker::check_usable() {
  notice_loss();
  if (lost_ != nullptr) std::rethrow_exception(lost_);
}

/// Takes the lost device out of service: its tasks go elsewhere or fail, as do those that come to this worker from now
/// on.
void DeviceWorker::lose_device(const std::exception_ptr& failure, const DeviceFailure& look) {
  options_.log->error("{} is lost, and runs no further tasks: {}", device_->name(), look.what);
  lost_ = failure;
  executor_.queues().retire(index_);
  executor_.memory().end_messages_from(spec_.node);
  while (!in_flight_.empty()) end_run({.place = in_flight_.oldest(), .failure = failure}, look);
  if (next_ != nullptr) refuse(*std::exchange(next_, nullptr), failure);
}

}  // namespace tandem::runtime
