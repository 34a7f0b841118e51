// tandem/analysis/tables/step_function.hpp: a number that changes at points in time, such as the count of running
// tasks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "tandem/analysis/tables/spill_vector.hpp"

namespace tandem::analysis {

/// The time from `begin_ns` to before `end_ns`.
struct Interval {
  std::int64_t begin_ns = 0, end_ns = 0;

  std::int64_t length_ns() const noexcept { return end_ns > begin_ns ? end_ns - begin_ns : 0; }
};

/// The beginnings and the ends of intervals, to be counted. Empty intervals and those that end before they begin do not
/// count.
class IntervalList {
 public:
  explicit IntervalList(const std::shared_ptr<SpillMemory>& memory = nullptr) : begins_(memory), ends_(memory) {}

  void add(Interval interval) {
    add_begin(interval);
    add_end(interval);
  }
  // The two halves of `add`, each for all intervals: if beginnings and ends are added in their orders, nothing is
  // sorted later.
  void add_begin(Interval interval) {
    if (interval.begin_ns < interval.end_ns) begins_.push_back(interval.begin_ns);
  }
  void add_end(Interval interval) {
    if (interval.begin_ns < interval.end_ns) ends_.push_back(interval.end_ns);
  }

 private:
  friend class StepFunction;
  SpillVector<std::int64_t> begins_, ends_;
};

/// A piecewise constant function: 0 before the first step; from a step's time on the value of that step. Times are ns
/// since the first event of a run. Immutable; copies share the steps.
class StepFunction {
 public:
  struct Step {
    std::int64_t at_ns = 0;
    std::int64_t value = 0;
  };
  /// A change of the value at a time.
  struct Change {
    std::int64_t at_ns = 0;
    std::int64_t by = 0;
  };

  StepFunction() : steps_(std::make_shared<SpillVector<Step>>()) {}
  /// From changes in any order. O(n).
  explicit StepFunction(SpillVector<Change> changes);
  explicit StepFunction(const std::vector<Change>& changes);
  /// The number of intervals that contain each time. O(n).
  static StepFunction count(IntervalList intervals);
  static StepFunction count(std::span<const Interval> intervals);
  /// The sum of all functions. O(n) for all steps.
  static StepFunction sum(std::span<const StepFunction* const> functions);

  /// The steps by time; neighbours differ.
  std::span<const Step> steps() const noexcept { return {steps_->data(), steps_->size()}; }
  /// For loops over the steps, like `SpillMemory::touch`.
  void touch() const noexcept { steps_->touch(); }
  /// The value at a time. O(log n).
  std::int64_t at(std::int64_t ns) const noexcept;

  // Over an interval: O(log n + steps within it). All are 0 for an empty interval.
  /// The integral of the value over time, in units of the value times ns.
  double integral(Interval interval) const noexcept;
  double mean(Interval interval) const noexcept;
  std::int64_t max(Interval interval) const noexcept;
  /// The first time of the greatest value.
  std::int64_t max_at_ns(Interval interval) const noexcept;
  /// How long the value was above 0.
  std::int64_t positive_ns(Interval interval) const noexcept;
  /// The mean in each of `count` parts of equal length (but for rounding to ns). Their sum, weighted by these lengths,
  /// is the integral. A part without length has the value at its time. O(count + n).
  std::vector<double> bins(Interval interval, std::size_t count) const;

 private:
  explicit StepFunction(const std::shared_ptr<SpillMemory>& memory)
      : steps_(std::make_shared<SpillVector<Step>>(memory)) {}

  std::shared_ptr<SpillVector<Step>> steps_;
};

/// Calls `call(Interval part, a's value, b's value)` for each part of the interval in which both are constant. O(n).
template <class Call>
void for_each_part(const StepFunction& a, const StepFunction& b, Interval interval, Call call) {
  const auto after = [](const StepFunction& function, std::int64_t ns) {
    return std::ranges::upper_bound(function.steps(), ns, {}, &StepFunction::Step::at_ns);
  };
  auto next_a = after(a, interval.begin_ns), next_b = after(b, interval.begin_ns);
  for (std::int64_t at_ns = interval.begin_ns; at_ns < interval.end_ns;) {
    const std::int64_t value_a = next_a == a.steps().begin() ? 0 : std::prev(next_a)->value;
    const std::int64_t value_b = next_b == b.steps().begin() ? 0 : std::prev(next_b)->value;
    std::int64_t until_ns = interval.end_ns;
    if (next_a != a.steps().end()) until_ns = std::min(until_ns, next_a->at_ns);
    if (next_b != b.steps().end()) until_ns = std::min(until_ns, next_b->at_ns);
    call(Interval{at_ns, until_ns}, value_a, value_b);
    a.touch();
    at_ns = until_ns;
    if (next_a != a.steps().end() && next_a->at_ns == at_ns) ++next_a;
    if (next_b != b.steps().end() && next_b->at_ns == at_ns) ++next_b;
  }
}

}  // namespace tandem::analysis
