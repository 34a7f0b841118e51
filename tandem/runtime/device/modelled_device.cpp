// tandem/runtime/device/modelled_device.cpp: gets a task's duration from the model, and waits for that time.
#include "tandem/runtime/device/modelled_device.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>
#include "tandem/runtime/task/task_number.hpp"

namespace tandem::runtime {

namespace {

bool reduces(const Task& task) {
  for (unsigned i = 0; i < task.access_count; ++i)
    if (shown_mode(task.accesses()[i]) == AccessMode::reduce) return true;
  return false;
}

}  // namespace

Device::Launched ModelledDevice::launch(DeviceTask& task, std::int64_t now_ns) {
  if (const auto work = work_of(task.task(), task.implementation())) {
    if (work->before != nullptr) work->before(task.task());
    if (work->computes || reduces(task.task())) task.run();
    begin(*work, task.place(), now_ns);
    return Launched::posted;
  }
  if (behind_ != nullptr) {
    const Launched launched = behind_->launch(task, now_ns);
    if (launched == Launched::posted) ++in_flight_behind_;
    return launched;
  }
  task.run();
  return Launched::done;
}

void ModelledDevice::begin(const EmulatedWork& work, unsigned place, std::int64_t now_ns) {
  std::int64_t begin_ns = std::max(now_ns, busy_until_ns_);
  std::int64_t takes_ns = work.ns;
  if (kind_ == DeviceKind::cpu) {
    const RuntimeCosts& costs = around_.host.costs();
    const bool sleeps = now_ns - busy_until_ns_ > around_.sleeps_after_ns;
    begin_ns += around_.host.take_delay() + costs.task_ns + (sleeps ? costs.wake_ns : 0);
    const unsigned busy = around_.host.begin_kernel();
    if (work.slow_down != nullptr)
      takes_ns = std::llround(static_cast<double>(work.ns) * work.slow_down->factor(busy));
    if (around_.memory != nullptr && work.bytes > 0) moving_ = around_.memory->begin(work.bytes, takes_ns, *waker_);
  }
  busy_until_ns_ = begin_ns + takes_ns;
  modelled_.push_back({.place = place, .until_ns = busy_until_ns_, .begin_ns = begin_ns});
}

std::int64_t ModelledDevice::poll(std::int64_t now_ns, std::vector<Ended>& ended) {
  std::int64_t next_ns = base::kNever;
  if (in_flight_behind_ != 0) {
    const std::size_t before = ended.size();
    next_ns = behind_->poll(now_ns, ended);
    in_flight_behind_ -= static_cast<unsigned>(ended.size() - before);
  }
  const bool ends_all = std::exchange(hurries_, false);
  if (moving_) {
    modelled_.front().until_ns = busy_until_ns_ = around_.memory->end_ns(*moving_);
    if (ends_all || busy_until_ns_ <= now_ns) around_.memory->end(*std::exchange(moving_, {}));
  }
  if (ends_all) busy_until_ns_ = now_ns;
  while (!modelled_.empty() && (ends_all || modelled_.front().until_ns <= now_ns)) {
    const Modelled& first = modelled_.front();
    const std::int64_t ran_ns = std::min(first.until_ns, now_ns) - first.begin_ns;  // one that hurries ends early
    ended.push_back({.place = first.place, .kernel_ns = std::max<std::int64_t>(ran_ns, 0)});
    modelled_.pop_front();
    if (kind_ == DeviceKind::cpu) around_.host.end_kernel();
  }
  return modelled_.empty() ? next_ns : std::min(next_ns, modelled_.front().until_ns);
}

std::optional<std::int64_t> ModelledDevice::expected_ns(const Task& task) const {
  const int first = task.codelet != nullptr ? task.codelet->implementation_for(kind_) : 0;
  const auto work = work_of(task, static_cast<unsigned>(std::max(first, 0)));
  return work ? std::optional(work->ns) : std::nullopt;
}

/// A task with a modelled time, and one that runs on the real device, do not wait for each other.
bool ModelledDevice::runs_behind(const DeviceTask& before, const Task& task) const {
  const bool modelled =
      work_of(task, static_cast<unsigned>(std::max(task.codelet->implementation_for(kind_), 0))).has_value();
  if (work_of(before.task(), before.implementation()).has_value() != modelled) return false;
  return modelled ? kind_ != DeviceKind::cpu : behind_ != nullptr && behind_->runs_behind(before, task);
}

std::optional<EmulatedWork> ModelledDevice::work_of(const Task& task, unsigned implementation) const {
  if (task.ops->serves) return {};
  std::vector<Shape> shapes(task.access_count);
  for (unsigned i = 0; i < task.access_count; ++i) shapes[i] = task.accesses()[i].handle()->shape;
  return model_({.codelet = task.codelet->name,
                 .data = shapes,
                 .device = kind_,
                 .implementation = implementation,
                 .tag = task.extra != nullptr ? task.extra->facts.tag : 0,
                 .number = TaskNumber::of(flow_position(task)),
                 .is_own = task.codelet->is_own,
                 .worker = around_.worker});
}

}  // namespace tandem::runtime
