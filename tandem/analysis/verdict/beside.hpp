// tandem/analysis/verdict/beside.hpp: tasks that ran beside an activity on their host, against similar tasks that did
// not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tandem/analysis/history/history.hpp"
#include "tandem/analysis/tables/step_function.hpp"

namespace tandem::analysis {

/// The union of some intervals of time.
class CoveredTime {
 public:
  explicit CoveredTime(const std::shared_ptr<SpillMemory>& memory) : parts_(memory), sums_(memory) {}
  void add(Interval interval) {
    if (interval.begin_ns < interval.end_ns) parts_.push_back(interval);
  }
  /// Called after the last `add`, and before `within`. O(n).
  void merge();
  /// How much of the interval is covered. O(log n).
  std::int64_t within(Interval interval) const { return until(interval.end_ns) - until(interval.begin_ns); }

 private:
  std::int64_t until(std::int64_t ns) const;

  SpillVector<Interval> parts_;
  SpillVector<std::int64_t> sums_;  ///< of the earlier parts
};

/// The hosts of a run, numbered. A rank whose host is not known has one of its own.
class Hosts {
 public:
  explicit Hosts(const History& history);
  std::size_t count() const noexcept { return count_; }
  /// The host's number; `count()`: there is no such rank.
  std::size_t of(std::uint32_t rank) const {
    const auto found = of_ranks_.find(rank);
    return found == of_ranks_.end() ? count_ : found->second;
  }

 private:
  std::map<std::uint32_t, std::size_t> of_ranks_;
  std::size_t count_ = 0;
};

/// The times of an activity, on each host.
class TimesOfHosts {
 public:
  /// `hosts` outlives this.
  TimesOfHosts(const History& history, const Hosts& hosts) : hosts_(hosts) {
    for (std::size_t i = 0; i < hosts.count(); ++i) times_.emplace_back(history.memory_of_tables());
  }
  /// Adds an interval on the host of `rank`, if there is such a rank.
  void add(std::uint32_t rank, Interval interval) {
    if (const std::size_t host = hosts_.of(rank); host != hosts_.count()) times_[host].add(interval);
  }
  /// Called after the last `add`.
  void merge() {
    for (CoveredTime& time : times_) time.merge();
  }
  const Hosts& hosts() const noexcept { return hosts_; }
  const CoveredTime& operator[](std::size_t host) const noexcept { return times_[host]; }

 private:
  const Hosts& hosts_;
  std::vector<CoveredTime> times_;
};

/// A task is beside an activity that lasts for at least half of its time, and quiet if that is at most a tenth.
struct BesideTasks {
  static constexpr std::size_t least_quiet = 4;  ///< fewer are not compared with

  std::uint64_t tasks = 0;            ///< beside the activity, and compared
  double slowness = 1;  ///< the median of duration / median of the quiet tasks of the codelet on the worker
  std::int64_t excess_ns = 0;         ///< time of these tasks beyond those medians, in all
  SpillVector<std::uint32_t> slowed = {};  ///< rows of tasks that took longer, ascending
};

/// Codelets with fewer quiet tasks on a worker are not compared there. O(n log n) for n tasks.
BesideTasks compare_beside(const History& history, const TimesOfHosts& going_on);

}  // namespace tandem::analysis
