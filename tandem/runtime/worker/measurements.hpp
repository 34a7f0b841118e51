// tandem/runtime/worker/measurements.hpp: measurements of one worker: kernels, and where its time goes.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "tandem/base/published.hpp"
#include "tandem/base/spin_lock.hpp"
#include "tandem/runtime/task/task.hpp"
#include "tandem/runtime/worker/statistics.hpp"

namespace tandem::runtime {

/// The measurements of one worker, all times in ns of the driver's clock.
///
/// Threads: the worker's thread writes. Any thread may call `report`, whose numbers then are close, not exact, and
/// `visit_durations` and `timeline`. Durations of kernels are under `lock_`, taken only when kernels are measured; only
/// the worker's thread writes, so it reads without the lock.
///
/// A worker is absent (the caller's worker outside of waits), idle, or at work; idle implies present.
class Measurements {
 public:
  Measurements(unsigned worker, bool timeline) : worker_(worker), keeps_timeline_(timeline) {}

  bool is_present() const noexcept { return present_since_ns_.get() >= 0; }
  void arrive(std::int64_t now_ns) noexcept { present_since_ns_.set(now_ns); }
  void leave(std::int64_t now_ns) noexcept;

  bool is_idle() const noexcept { return idle_since_ns_.get() >= 0; }
  std::int64_t idle_since_ns() const noexcept { return idle_since_ns_.get(); }
  void begin_idle(std::int64_t now_ns) noexcept { idle_since_ns_.set(now_ns); }
  void end_idle(std::int64_t now_ns) noexcept;

  /// Counts a wait for an urgent task although the worker could run another one.
  void count_hold() noexcept { holds_.add(1); }
  /// Counts a look that found no task, while not polling the network.
  void count_poll() noexcept { polls_.add(1); }
  /// Counts a wake-up by another thread, from sleep or from a wait awake.
  void count_wake() noexcept { wakes_.add(1); }
  /// Counts a memory-bound task that it took and that waits for others.
  void count_aside() noexcept { aside_.add(1); }
  void add_kernel(const Task& task, std::int64_t start_ns, std::int64_t end_ns) {
    add_duration(task, start_ns, end_ns);
    busy_ns_.add(static_cast<double>(end_ns - start_ns));
  }
  /// Adds a kernel of a worker that reports separately when it is busy.
  void add_duration(const Task& task, std::int64_t start_ns, std::int64_t end_ns);
  /// Notes that a kernel of `codelet` begins, or is the first of those that its device has; only for `visit_busy`.
  void begin_kernel(const CodeletCore* codelet, std::int64_t now_ns) {
    const std::lock_guard guard(lock_);
    running_ = codelet;
    running_since_ns_ = now_ns;
  }
  /// Notes that its device, which had nothing in flight, has work.
  void begin_busy(std::int64_t now_ns) noexcept { busy_since_ns_.set(now_ns); }
  void end_busy(std::int64_t now_ns) noexcept;
  /// Counts a task that its device could not run and that has gone elsewhere.
  void count_fallback() noexcept { fallbacks_.add(1); }
  /// Counts a task that was posted to its device while the one before it was in flight.
  void count_behind() noexcept { behind_.add(1); }

  /// Mean duration of a codelet's kernels on this worker; no value: none was measured.
  std::optional<std::int64_t> mean_ns(const CodeletCore* codelet) const;
  /// Calls `visit(codelet, durations)` for each codelet that has run.
  template <class Visit>
  void visit_durations(Visit visit) const {
    const std::lock_guard guard(lock_);
    for (const auto& [codelet, durations] : durations_) visit(*codelet, durations);
  }
  /// Calls `visit(codelet, ns)` with the time that kernels of each codelet have run until `now_ns`, the running one
  /// included.
  template <class Visit>
  void visit_busy(std::int64_t now_ns, Visit visit) const {
    const std::lock_guard guard(lock_);
    for (const auto& [codelet, durations] : durations_) visit(*codelet, durations.total_ns());
    if (running_ != nullptr && now_ns > running_since_ns_)
      visit(*running_, static_cast<double>(now_ns - running_since_ns_));
  }
  std::vector<TimelineEvent> timeline() const {
    const std::lock_guard guard(lock_);
    return timeline_;
  }
  /// Report without the number of steals, which the queues count.
  WorkerReport report(std::int64_t now_ns) const noexcept;

 private:
  const unsigned worker_;
  const bool keeps_timeline_;
  mutable base::SpinLock lock_;
  std::unordered_map<const CodeletCore*, DurationStatistics> durations_;
  std::vector<TimelineEvent> timeline_;
  const CodeletCore* running_ = nullptr;  ///< null: none runs, or `visit_busy` is not used
  std::int64_t running_since_ns_ = 0;
  base::Published<std::int64_t> present_since_ns_{-1};  ///< -1: absent
  base::Published<std::int64_t> idle_since_ns_{-1};     ///< -1: not idle
  base::Published<std::uint64_t> tasks_;
  base::Published<std::uint64_t> holds_;
  base::Published<std::uint64_t> aside_;
  base::Published<std::uint64_t> polls_;
  base::Published<std::uint64_t> wakes_;
  base::Published<std::int64_t> busy_since_ns_{-1};  ///< -1: not busy, or the worker has no device
  base::Published<std::uint64_t> fallbacks_;
  base::Published<std::uint64_t> behind_;
  base::Published<double> busy_ns_;
  base::Published<double> idle_ns_;
  base::Published<double> total_ns_;
};

}  // namespace tandem::runtime
