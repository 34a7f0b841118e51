// tools/bench/budget.hpp: the time limit of a benchmark, and the part of each of its suites.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace tandem::tools {

/// Deals the time of a benchmark to its suites, in their order. Time that one suite leaves goes to the later ones.
class BenchBudget {
 public:
  using Clock = std::chrono::steady_clock;

  /// `weights` has one number for each suite: its work in a round. Without a limit (zero), there is always time.
  BenchBudget(std::chrono::nanoseconds limit, std::vector<std::size_t> weights, Clock::time_point now)
      : end_(limit.count() > 0 ? now + limit : Clock::time_point::max()), weights_(std::move(weights)) {}

  /// The time at which the next suite should end.
  Clock::time_point next(Clock::time_point now) {
    double left = 0;
    for (std::size_t i = at_; i < weights_.size(); ++i) left += static_cast<double>(weights_[i]);
    const double share = at_ < weights_.size() && left > 0 ? static_cast<double>(weights_[at_]) / left : 1;
    ++at_;
    if (end_ == Clock::time_point::max()) return end_;
    if (now >= end_) return now;
    return now + std::chrono::duration_cast<Clock::duration>((end_ - now) * share);
  }

 private:
  Clock::time_point end_;
  std::vector<std::size_t> weights_;
  std::size_t at_ = 0;
};

}  // namespace tandem::tools
