// tandem/sim_rank/kernel_times.hpp: how long kernels take in a simulation, and how much that varies.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "tandem/runtime/device/emulation.hpp"
#include "tandem/runtime/sched/estimates.hpp"
#include "tandem/sim_rank/platform.hpp"

namespace tandem::sim {

/// The duration of one kind of task: a codelet's implementation, sizes of data, a kind of worker.
struct KernelTime {
  double mean_ns = 0;
  double deviation_ns = 0;   ///< of one duration
  double mean_error_ns = 0;  ///< of the mean itself, since it was measured: one standard deviation
  runtime::SlowDown slow_down = {};  ///< by what runs beside it
  bool computes = false;             ///< the kernel runs, too
  double bytes = 0;                  ///< that it moves between its core and memory; see `moved_bytes`
};

/// The time of one of the runtime's own tasks: that of copying its data. It runs where kernels do, and where its data
/// is as short as what messages carry, so that sums have values.
KernelTime time_of_own(const runtime::EmulatedTask& task, const Platform& platform, Execution execution);

/// The duration on a kind of node (`Platform::kind_of`). Nothing: it is not known. Not asked of the runtime's own
/// tasks.
using KernelTimes = std::function<std::optional<KernelTime>(const runtime::EmulatedTask& task, std::uint32_t node)>;

/// Draws the durations of one rank's tasks, all from one seed. The mean of a kind of task is wrong by the same factor
/// on all ranks, so is the run (`Platform::run_spread`), a node is faster or slower as a whole
/// (`Platform::node_spread`), and each duration varies. All factors are log-normal, since durations are positive, and
/// long ones are more frequent than short ones.
///
/// Threads: one.
class DrawnTimes {
 public:
  DrawnTimes(const Platform& platform, std::uint32_t rank, std::uint64_t seed);
  /// The duration of one task, which refers to `time`. `kind` is a number for its kind, equal on all ranks;
  /// `slowness`: how many times as long it takes on its worker.
  runtime::EmulatedWork draw(const KernelTime& time, std::uint64_t kind, double slowness = 1);

 private:
  const std::uint64_t seed_;
  std::uint64_t state_;
  double node_factor_ = 1;
};

/// A number for a kind of task.
std::uint64_t number_of_kind(const runtime::EmulatedTask& task);

/// What a simulation knows of durations, for policies that look ahead, as models that earlier runs have stored would
/// tell them. By the bytes of a task's data, whatever their shapes.
///
/// Threads: one.
class KnownDurations final : public runtime::Estimates {
 public:
  using TimeOf = std::function<std::optional<KernelTime>(const runtime::EmulatedTask& task)>;
  explicit KnownDurations(TimeOf time_of) : time_of_(std::move(time_of)) {}
  runtime::Estimate expected_ns(std::string_view codelet, model::Footprint footprint, DeviceKind kind) const override;

 private:
  const TimeOf time_of_;
  mutable std::unordered_map<std::uint64_t, runtime::Estimate> known_;  ///< by the number of a kind of task
};

}  // namespace tandem::sim
