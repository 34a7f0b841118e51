// tandem/runtime/device/modelled_device.cpp: gets a task's duration from the model, and waits for that time.
#include "tandem/runtime/device/modelled_device.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace tandem::runtime {

Device::Launched ModelledDevice::launch(DeviceTask& task, std::int64_t now_ns) {
  if (const auto work = work_of(task.task(), task.implementation())) {
    busy_until_ns_ = std::max(now_ns, busy_until_ns_) + work->ns;
    if (memory_ != nullptr && work->bytes > 0) moving_ = memory_->begin(work->bytes, work->ns, *waker_);
    modelled_.push_back({task.place(), busy_until_ns_, kind_ != DeviceKind::cpu ? work->ns : 0});
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

std::int64_t ModelledDevice::poll(std::int64_t now_ns, std::vector<Ended>& ended) {
  std::int64_t next_ns = base::kNever;
  if (in_flight_behind_ != 0) {
    const std::size_t before = ended.size();
    next_ns = behind_->poll(now_ns, ended);
    in_flight_behind_ -= static_cast<unsigned>(ended.size() - before);
  }
  const bool ends_all = std::exchange(hurries_, false);
  if (moving_) {
    modelled_.front().until_ns = busy_until_ns_ = memory_->end_ns(*moving_);
    if (ends_all || busy_until_ns_ <= now_ns) memory_->end(*std::exchange(moving_, {}));
  }
  if (ends_all) busy_until_ns_ = now_ns;
  while (!modelled_.empty() && (ends_all || modelled_.front().until_ns <= now_ns)) {
    ended.push_back({.place = modelled_.front().place, .kernel_ns = modelled_.front().kernel_ns});
    modelled_.pop_front();
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
  for (unsigned i = 0; i < task.access_count; ++i) {
    if (shown_mode(task.accesses()[i]) == AccessMode::reduce) return {};
    shapes[i] = task.accesses()[i].handle()->shape;
  }
  return model_({task.codelet->name, shapes, kind_, implementation});
}

}  // namespace tandem::runtime
