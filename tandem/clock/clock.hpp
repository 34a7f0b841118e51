// tandem/clock/clock.hpp: the interface by which all other code reads the time, and the clocks that implement it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace tandem::clock {

/// A clock that never runs backwards as one thread sees it. now_ns() is thread-safe. Each clock has its own origin:
/// only differences of one clock's times mean anything, unless the implementation says more.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t now_ns() const noexcept = 0;
};

/// The kernel's CLOCK_MONOTONIC_RAW: time since boot, not slewed by NTP; about 20 ns to read. All processes of a
/// machine agree.
class RawMonotonicClock final : public Clock {
 public:
  std::int64_t now_ns() const noexcept override;
};

/// Stands still until a caller moves it: for the test world. Thread-safe; a reader that sees a time also sees what the
/// thread that set it had written before (release pairs with acquire).
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::int64_t start_ns = 0) noexcept : now_ns_(start_ns) {}

  std::int64_t now_ns() const noexcept override { return now_ns_.load(std::memory_order_acquire); }

  /// Moves to a time. Going back is a bug of the caller (assertion). Called by one thread at a time.
  void set_ns(std::int64_t now_ns) noexcept;
  /// Moves forward by `step_ns`, which is not negative.
  void advance_ns(std::int64_t step_ns) noexcept;

 private:
  std::atomic<std::int64_t> now_ns_;
};

/// The cheapest reliable clock of this machine: the TSC when it is invariant, else RawMonotonicClock. Both count from
/// CLOCK_MONOTONIC_RAW's origin. Takes about 10 ms, to calibrate.
std::unique_ptr<Clock> best_clock();

}  // namespace tandem::clock
