// tandem/clock/clock.cpp: the kernel's clock, the manual clock, and the choice of the best.
#include "tandem/clock/clock.hpp"

#include <ctime>

#include "tandem/base/assert.hpp"
#include "tandem/clock/tsc_clock.hpp"

namespace tandem::clock {

std::int64_t RawMonotonicClock::now_ns() const noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void ManualClock::set_ns(std::int64_t now_ns) noexcept {
  TANDEM_ASSERT(now_ns >= now_ns_.load(std::memory_order_relaxed));
  now_ns_.store(now_ns, std::memory_order_release);  // pairs with the acquire in now_ns()
}

void ManualClock::advance_ns(std::int64_t step_ns) noexcept {
  set_ns(now_ns_.load(std::memory_order_relaxed) + step_ns);
}

std::unique_ptr<Clock> best_clock() {
  auto tsc = TscClock::calibrate();
  if (tsc) return std::make_unique<TscClock>(tsc.value());
  return std::make_unique<RawMonotonicClock>();
}

}  // namespace tandem::clock
