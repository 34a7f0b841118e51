// tandem/analysis/verdict/kernel_profile.hpp: how long the tasks of each codelet took.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tandem/analysis/history/history.hpp"
#include "tandem/analysis/verdict/worker_kinds.hpp"

namespace tandem::analysis {

/// How long tasks took, in ns. An outlier takes longer than the third quartile plus 1.5 times the distance between the
/// quartiles (Tukey).
struct Durations {
  std::uint64_t tasks = 0;
  std::int64_t total_ns = 0;
  std::int64_t min_ns = 0, first_quartile_ns = 0, median_ns = 0, third_quartile_ns = 0, max_ns = 0;
  std::uint64_t outliers = 0;
  std::int64_t outlier_excess_ns = 0;  ///< time of outliers beyond the median

  /// The limit of outliers; `factor` of the distance between the quartiles.
  double limit_ns(double factor = 1.5) const noexcept {
    return static_cast<double>(third_quartile_ns) + factor * static_cast<double>(third_quartile_ns - first_quartile_ns);
  }
};

/// Durations of tasks as multiples of what the scheduler expected when it chose their workers.
struct Expectations {
  std::uint32_t kind = 0;   ///< of the workers: a number of `WorkerKinds`
  std::uint64_t tasks = 0;  ///< tasks with an expectation; the rest is about these
  double first_quartile = 0, median = 0, third_quartile = 0;  ///< 1: as expected; 2: twice as long
  double error = 0;         ///< mean distance of duration and expectation, as a part of the mean expectation
};

/// The tasks of a codelet on the workers of a kind.
struct KernelOnKind : Durations {
  std::uint32_t kind = 0;  ///< a number of `WorkerKinds`
};

/// The tasks of a codelet that have run. On several kinds of worker they take different times; outliers are then those
/// of each kind alone, and `outliers` and `outlier_excess_ns` are their sums.
struct KernelProfile : Durations {
  Texts::Id codelet = 0;
  std::vector<KernelOnKind> kinds;  ///< by kind; empty where all workers of the run are of one kind

  /// The durations that a task of this codelet on workers of `kind` is compared with.
  const Durations& on(std::uint32_t kind) const noexcept {
    for (const KernelOnKind& one : kinds)
      if (one.kind == kind) return one;
    return *this;
  }

  double flops = 0;                    ///< of those tasks whose operations the program told
  std::int64_t flops_ns = 0;           ///< time of these tasks

  std::vector<Expectations> expectations;  ///< by kind of worker; empty: nothing was expected

  // Sums over tasks for which the processor counted both; 0: none was counted.
  std::uint64_t counted_tasks = 0;
  double cycles = 0, instructions = 0;
  std::optional<double> stalled = {}, misses = {};  ///< empty: not counted for some of these tasks

  /// Instructions per cycle; empty: not counted.
  std::optional<double> instructions_per_cycle() const noexcept {
    return cycles > 0 ? std::optional(instructions / cycles) : std::nullopt;
  }
  /// Floating-point operations per second; 0: not known.
  double flops_per_second() const noexcept { return flops_ns > 0 ? flops * 1e9 / static_cast<double>(flops_ns) : 0; }
};

/// The profiles by total time, greatest first. O(n) for n tasks.
std::vector<KernelProfile> profile_kernels(const History& history);

/// What each task is compared with: the durations of its codelet on its kind of worker. Refers to both arguments.
class UsualDurations {
 public:
  UsualDurations(const History& history, const std::vector<KernelProfile>& kernels)
      : tasks_(history.tasks), kinds_(history), of_codelet_(history.texts.size()) {
    for (const KernelProfile& kernel : kernels) of_codelet_[kernel.codelet] = &kernel;
  }
  /// The task in `row` has run. O(1) where all workers are of one kind.
  const Durations& of(std::uint32_t row) const {
    return of_codelet_[tasks_.codelet(row)]->on(kinds_.of(tasks_.rank[row], tasks_.worker[row]));
  }
  bool is_outlier(std::uint32_t row, double factor = 1.5) const {
    return static_cast<double>(tasks_.end_ns[row] - tasks_.start_ns[row]) > of(row).limit_ns(factor);
  }

 private:
  const TaskTable& tasks_;
  WorkerKinds kinds_;
  std::vector<const KernelProfile*> of_codelet_;
};

}  // namespace tandem::analysis
