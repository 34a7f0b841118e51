// tandem/clock/drifting_clock.hpp: a clock with a known error, to test and measure corrections of clocks.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "tandem/base/assert.hpp"
#include "tandem/clock/clock.hpp"

namespace tandem::clock {

/// How a clock departs from another one, as a pure function. With t the other's time since `origin_ns`, it shows t +
/// offset + rate t + amplitude sin(2 pi t / period).
struct Drift {
  std::int64_t origin_ns = 0;
  std::int64_t offset_ns = 0;
  double rate = 0;           ///< 50e-6: gains 50 us per second
  double amplitude_ns = 0;
  std::int64_t period_ns = 1'000'000'000;

  /// The clock's time when the other clock shows `base_ns`.
  std::int64_t at(std::int64_t base_ns) const noexcept {
    const auto elapsed_ns = static_cast<double>(base_ns - origin_ns);
    const double phase = 2 * std::numbers::pi * elapsed_ns / static_cast<double>(period_ns);
    return base_ns + offset_ns + std::llround(rate * elapsed_ns + amplitude_ns * std::sin(phase));
  }
  /// Most difference of rates, and most change of it in a second: what `DriftLimits` must allow.
  double greatest_rate() const noexcept {
    return std::abs(rate) + std::abs(amplitude_ns) * 2 * std::numbers::pi / static_cast<double>(period_ns);
  }
  double greatest_rate_change_per_s() const noexcept {
    const double turn = 2 * std::numbers::pi / static_cast<double>(period_ns);
    return std::abs(amplitude_ns) * turn * turn * 1e9;
  }
};

/// Another clock with a drift. As thread-safe as that clock, which outlives it.
class DriftingClock final : public Clock {
 public:
  /// `drift` must leave it running forwards: rates within 0.5 (assertion).
  DriftingClock(const Clock& base, const Drift& drift) : base_(base), drift_(drift) {
    TANDEM_ASSERT(drift.period_ns > 0 && drift.greatest_rate() < 0.5);
  }

  std::int64_t now_ns() const noexcept override { return drift_.at(base_.now_ns()); }
  const Drift& drift() const noexcept { return drift_; }

 private:
  const Clock& base_;
  Drift drift_;
};

}  // namespace tandem::clock
