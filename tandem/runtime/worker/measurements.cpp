// tandem/runtime/worker/measurements.cpp: sums of kernels and times.
#include "tandem/runtime/worker/measurements.hpp"

#include "tandem/runtime/task/codelet_core.hpp"

namespace tandem::runtime {

void Measurements::leave(std::int64_t now_ns) noexcept {
  end_idle(now_ns);
  if (is_present()) total_ns_.add(static_cast<double>(now_ns - present_since_ns_.get()));
  present_since_ns_.set(-1);
}

void Measurements::end_idle(std::int64_t now_ns) noexcept {
  if (is_idle()) idle_ns_.add(static_cast<double>(now_ns - idle_since_ns_.get()));
  idle_since_ns_.set(-1);
}

void Measurements::end_busy(std::int64_t now_ns) noexcept {
  if (busy_since_ns_.get() >= 0) busy_ns_.add(static_cast<double>(now_ns - busy_since_ns_.get()));
  busy_since_ns_.set(-1);
}

void Measurements::add_duration(const Task& task, std::int64_t start_ns, std::int64_t end_ns) {
  {
    const std::lock_guard guard(lock_);
    durations_[task.codelet].add(static_cast<double>(end_ns - start_ns));
    running_ = nullptr;
    if (keeps_timeline_) timeline_.push_back({&task.codelet->name, flow_position(task), worker_, start_ns, end_ns});
  }
  tasks_.add(1);
}

std::optional<std::int64_t> Measurements::mean_ns(const CodeletCore* codelet) const {
  const auto known = durations_.find(codelet);
  if (known == durations_.end()) return {};
  return static_cast<std::int64_t>(known->second.mean_ns);
}

WorkerReport Measurements::report(std::int64_t now_ns) const noexcept {
  WorkerReport report;
  report.tasks = tasks_.get();
  report.holds = holds_.get();
  report.put_aside = aside_.get();
  report.polls = polls_.get();
  report.wakes = wakes_.get();
  report.fallbacks = fallbacks_.get();
  report.posted_behind = behind_.get();
  report.busy_ns = busy_ns_.get();
  report.idle_ns = idle_ns_.get();
  report.total_ns = total_ns_.get();
  if (const auto since_ns = present_since_ns_.get(); since_ns >= 0)
    report.total_ns += static_cast<double>(now_ns - since_ns);
  if (const auto since_ns = busy_since_ns_.get(); since_ns >= 0)
    report.busy_ns += static_cast<double>(now_ns - since_ns);
  if (const auto since_ns = idle_since_ns_.get(); since_ns >= 0)
    report.idle_ns += static_cast<double>(now_ns - since_ns);
  return report;
}

}  // namespace tandem::runtime
