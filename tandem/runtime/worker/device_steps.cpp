// tandem/runtime/worker/device_steps.cpp: the steps of a worker with a device, and what happens when the device fails.
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "tandem/base/assert.hpp"
#include "tandem/runtime/task/describe.hpp"
#include "tandem/runtime/worker/expected_end.hpp"
#include "tandem/runtime/worker/worker.hpp"

namespace tandem::runtime {

// --- steps

std::int64_t Worker::step_device(std::int64_t now_ns) {
  if (!in_flight_->empty()) collect(now_ns);
  wake_up();
  for (unsigned count = 0; count < options_.tasks_per_step && !is_paused(); ++count)
    if (!go_on(now_ns)) return in_flight_->empty() ? rest(now_ns) : rest_beside_device();
  queue_kept();
  return now_ns;
}

/// One task further; false: there is nothing to do before something ends or becomes ready.
bool Worker::go_on(std::int64_t now_ns) {
  if (next_ != nullptr && !in_flight_->full()) {
    launch(*std::exchange(next_, nullptr));
    return true;
  }
  if (!takes_tasks()) return false;
  Task* const task = take_unless_holding();
  if (task == nullptr) return false;
  progress_.do_rest();
  if (measurements_.is_idle() || woken_) back_to_work(now_ns);
  if (lost_ != nullptr) {
    if (executor_.may_begin(*task) || begin(*task)) prepare(*task);
  } else if (is_ready(*task)) {
    if (in_flight_->full()) next_ = task;
    else launch(*task);
  }
  return true;
}

/// There is a place for a task, or its data can be fetched meanwhile.
bool Worker::takes_tasks() const noexcept {
  return !in_flight_->full() || (next_ == nullptr && spec_.node != 0 && !executor_.queues().stages_enough(index_));
}

/// Tasks are in flight, and there is nothing else to do.
std::int64_t Worker::rest_beside_device() {
  queue_kept();
  executor_.flush(origin_);
  const std::int64_t now_ns = clock_.now_ns();
  const std::int64_t poll_ns = collect(now_ns);
  if (!ended_.empty()) return now_ns;
  ReadyQueues& queues = executor_.queues();
  const bool takes = takes_tasks();
  // It may have been woken for a task that it does not take: another must.
  if ((!takes || queues.stages_enough(index_)) && std::exchange(woken_, false)) queues.pass_on_wake(index_);
  if (!takes) return poll_ns;
  queues.announce_idle(index_);
  announced_ = true;
  if (!hold_.finds_nothing()) return now_ns;
  woken_ = false;
  return poll_ns;
}

/// Ends what has ended on the device, which is `ended_` then. When to poll again.
std::int64_t Worker::collect(std::int64_t now_ns) {
  ended_.clear();
  const std::int64_t next_ns = device_->poll(now_ns, ended_);
  for (const Device::Ended& ended : ended_) {
    if (lost_ != nullptr) break;
    complete(ended);
  }
  return next_ns;
}

// --- tasks

void Worker::launch(Task& task) {
  executor_.take_refusal(task);  // its data has come all the same
  const std::int64_t now_ns = clock_.now_ns();
  const Implementations::Choice choice = implementation_for(task);
  if (in_flight_->empty()) {
    measurements_.begin_busy(now_ns);
    if (options_.metered) [[unlikely]] measurements_.begin_kernel(task.codelet, now_ns);
  }
  DeviceTask& launched = in_flight_->take(task, choice, executor_.memory(), now_ns);
  trace_oldest();
  if (expects())
    if (const auto duration_ns = expected_ns(task)) report_expected_end(task, *duration_ns);
  const unsigned place = launched.place();
  try {
    if (device_->launch(launched, now_ns) == Device::Launched::posted) return;
  } catch (...) {
    return complete({.place = place, .failure = std::current_exception()});
  }
  complete({.place = place});
}

/// For the trace a device runs one task after the other, in the order of launches: each starts when the one before it has ended.
void Worker::trace_oldest() {
  if (in_flight_->empty()) return;
  const unsigned place = in_flight_->oldest();
  if (!std::exchange(in_flight_->run(place).is_traced, true)) trace_.note_started(in_flight_->at(place).task());
}

void Worker::complete(const Device::Ended& ended) {
  TANDEM_ASSERT(in_flight_->has(ended.place));  // the device reports what it has, once
  if (ended.failure == nullptr) return end_run(ended, {});
  const DeviceFailure failure = look_at(ended.failure);
  if (failure.is_devices && failure.effect == DeviceEffect::lost) return lose_device(ended.failure, failure);
  end_run(ended, failure);
}

/// A task in flight has ended, or goes elsewhere.
void Worker::end_run(const Device::Ended& ended, const DeviceFailure& failure) {
  Task& task = in_flight_->at(ended.place).task();
  const InFlight::Run run = in_flight_->leave(ended.place);
  const std::int64_t now_ns = clock_.now_ns();
  const std::int64_t since_ns = ended.kernel_ns > 0 ? now_ns - ended.kernel_ns : std::max(run.launched_ns, ended_at_ns_);
  ended_at_ns_ = now_ns;
  if (in_flight_->empty()) measurements_.end_busy(now_ns);
  if (failure.is_devices && may_fall_back(task, failure.effect != DeviceEffect::refused)) {
    if (run.is_traced) trace_.note_ended(task);
    trace_oldest();
    return fall_back(task, failure.what);
  }
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
  if (options_.metered && !in_flight_->empty()) [[unlikely]]
    measurements_.begin_kernel(in_flight_->at(in_flight_->oldest()).task().codelet, now_ns);
  learn(task, run.choice, since_ns, now_ns);
  finish(task);
  trace_oldest();
}

// --- failures of the device

/// `task` does not run here, since `failure` came before its launch.
void Worker::refuse(Task& task, const std::exception_ptr& failure) {
  const DeviceFailure look = look_at(failure);
  if (look.is_devices && may_fall_back(task, false)) return fall_back(task, look.what);
  fail(task, look.is_devices ? named(task, failure, look) : failure);
  skip(task);
}

/// Whether another worker can run `task`. `had_begun`: what it writes is undefined here, and is given up when the answer is yes.
bool Worker::may_fall_back(Task& task, bool had_begun) {
  return executor_.has_other(task, index_) && (!had_begun || executor_.memory().drop_damaged(task, spec_.node));
}

/// Others run `task`; it belongs to them when this returns.
void Worker::fall_back(Task& task, const std::string& why) {
  measurements_.count_fallback();
  options_.log->warn("{}: {} could not run it, and another worker does: {}", describe(task), device_->name(), why);
  executor_.memory().give_back(task, spec_.node);
  if (spec_.binds_copies && task.special) executor_.memory().return_private_copies(task, Memory::CopyFate::unchanged);
  executor_.reroute(task, index_, origin_);
}

/// The failure, with the names of the task and the device.
std::exception_ptr Worker::named(const Task& task, const std::exception_ptr& failure, const DeviceFailure& look) const {
  if (device_ == nullptr) return failure;
  try {
    std::rethrow_exception(failure);
  } catch (const DeviceError&) {
    return std::make_exception_ptr(DeviceError(look.effect, fmt::format("{} on {}: {}", describe(task), device_->name(), look.what)));
  } catch (...) {
    return failure;  // it names the data and the memory
  }
}

/// The device runs nothing any more: what it had goes elsewhere, or fails, and so does what comes to this worker from now on.
void Worker::lose_device(const std::exception_ptr& failure, const DeviceFailure& look) {
  options_.log->error("{} is lost, and runs no further tasks: {}", device_->name(), look.what);
  lost_ = failure;
  executor_.queues().retire(index_);
  while (!in_flight_->empty()) end_run({.place = in_flight_->oldest(), .failure = failure}, look);
  if (next_ != nullptr) refuse(*std::exchange(next_, nullptr), failure);
}

}  // namespace tandem::runtime
