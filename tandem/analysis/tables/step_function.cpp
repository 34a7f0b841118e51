// tandem/analysis/tables/step_function.cpp: a number that changes at instants, such as the tasks that run.
#include "tandem/analysis/tables/step_function.hpp"

#include <algorithm>
#include <utility>

#include "tandem/analysis/tables/sort_times.hpp"

namespace tandem::analysis {
namespace {

const StepFunction zero;

template <class Call>
void for_each_value(const StepFunction& function, Interval interval, Call call) {
  for_each_part(function, zero, interval, [&](Interval part, std::int64_t value, std::int64_t) { call(part, value); });
}

}  // namespace

StepFunction::StepFunction(SpillVector<Change> changes) : StepFunction(changes.memory()) {
  sort_by_time(changes, &Change::at_ns);
  std::int64_t value = 0;
  for (std::size_t i = 0; i < changes.size();) {
    const std::int64_t at_ns = changes[i].at_ns;
    const std::int64_t before = value;
    for (; i < changes.size() && changes[i].at_ns == at_ns; ++i) value += changes[i].by;
    if (value != before) steps_->push_back({at_ns, value});
    changes.touch();
  }
}

namespace {

SpillVector<StepFunction::Change> copy_of(const std::vector<StepFunction::Change>& changes) {
  SpillVector<StepFunction::Change> copies;
  for (const StepFunction::Change& change : changes) copies.push_back(change);
  return copies;
}

}  // namespace

StepFunction::StepFunction(const std::vector<Change>& changes) : StepFunction(copy_of(changes)) {}

StepFunction StepFunction::count(IntervalList intervals) {
  auto &begins = intervals.begins_, &ends = intervals.ends_;
  sort_by_time(begins);
  sort_by_time(ends);
  StepFunction result(begins.memory());
  std::int64_t value = 0;
  for (std::size_t begin = 0, end = 0; end < ends.size();) {  // each begins before it ends
    const std::int64_t at_ns = begin < begins.size() ? std::min(begins[begin], ends[end]) : ends[end];
    const std::int64_t before = value;
    for (; begin < begins.size() && begins[begin] == at_ns; ++begin) ++value;
    for (; end < ends.size() && ends[end] == at_ns; ++end) --value;
    if (value != before) result.steps_->push_back({at_ns, value});
    begins.touch();
  }
  return result;
}

StepFunction StepFunction::count(std::span<const Interval> intervals) {
  IntervalList list;
  for (const Interval& interval : intervals) list.add(interval);
  return count(std::move(list));
}

StepFunction StepFunction::sum(std::span<const StepFunction* const> functions) {
  if (functions.size() == 1) return *functions.front();
  SpillVector<Change> changes(functions.empty() ? nullptr : functions.front()->steps_->memory());
  for (const StepFunction* const function : functions) {
    std::int64_t before = 0;
    for (const Step& step : *function->steps_) {
      changes.push_back({step.at_ns, step.value - before});
      before = step.value;
    }
  }
  return StepFunction(std::move(changes));
}

std::int64_t StepFunction::at(std::int64_t ns) const noexcept {
  const auto after = std::ranges::upper_bound(*steps_, ns, {}, &Step::at_ns);
  return after == steps_->begin() ? 0 : std::prev(after)->value;
}

double StepFunction::integral(Interval interval) const noexcept {
  double sum = 0;
  for_each_value(*this, interval, [&](Interval part, std::int64_t value) {
    sum += static_cast<double>(value) * static_cast<double>(part.length_ns());
  });
  return sum;
}

double StepFunction::mean(Interval interval) const noexcept {
  return interval.length_ns() == 0 ? 0 : integral(interval) / static_cast<double>(interval.length_ns());
}

std::int64_t StepFunction::max(Interval interval) const noexcept {
  return interval.length_ns() == 0 ? 0 : at(max_at_ns(interval));
}

std::int64_t StepFunction::max_at_ns(Interval interval) const noexcept {
  std::int64_t greatest = at(interval.begin_ns), at_ns = interval.begin_ns;
  for_each_value(*this, interval, [&](Interval part, std::int64_t value) {
    if (value <= greatest) return;
    greatest = value;
    at_ns = part.begin_ns;
  });
  return at_ns;
}

std::int64_t StepFunction::positive_ns(Interval interval) const noexcept {
  std::int64_t sum_ns = 0;
  for_each_value(*this, interval,
                 [&](Interval part, std::int64_t value) { sum_ns += value > 0 ? part.length_ns() : 0; });
  return sum_ns;
}

std::vector<double> StepFunction::bins(Interval interval, std::size_t count) const {
  std::vector<double> means(count);
  // begin + length * i / count, without an overflow.
  const auto parts = static_cast<std::int64_t>(count);
  const auto border_ns = [&](std::size_t i) {
    const auto n = static_cast<std::int64_t>(i);
    return interval.begin_ns + interval.length_ns() / parts * n + interval.length_ns() % parts * n / parts;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const Interval part{border_ns(i), border_ns(i + 1)};
    means[i] = part.length_ns() == 0 ? static_cast<double>(at(part.begin_ns)) : mean(part);
  }
  return means;
}

}  // namespace tandem::analysis
