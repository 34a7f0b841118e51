// tandem/clock/tsc_clock.hpp: the processor's time stamp counter as a clock, a few nanoseconds to read.
#pragma once

#include <cstdint>

#include "tandem/base/result.hpp"
#include "tandem/clock/clock.hpp"

namespace tandem::clock {

/// Nanoseconds as a linear function of ticks: ns = origin_ns + (ticks - origin_ticks) * multiplier / 2^32. Pure, a
/// value; the product is computed in 128 bits, so that it holds for centuries, and for ticks before the origin.
struct TickScale {
  std::uint64_t origin_ticks = 0;
  std::int64_t origin_ns = 0;
  std::int64_t multiplier = 0;  ///< nanoseconds per tick times 2^32

  /// The line through two points; `late_ticks` > `early_ticks`.
  static TickScale through(std::uint64_t early_ticks, std::int64_t early_ns, std::uint64_t late_ticks,
                           std::int64_t late_ns);

  std::int64_t to_ns(std::uint64_t ticks) const noexcept {
    __extension__ using Wide = __int128;
    const auto elapsed = static_cast<std::int64_t>(ticks - origin_ticks);
    return origin_ns + static_cast<std::int64_t>((static_cast<Wide>(elapsed) * multiplier) >> 32);
  }
  double ticks_per_ns() const noexcept { return 4294967296.0 / static_cast<double>(multiplier); }
};

/// The TSC, on processors where it is invariant: its rate does not depend on sleep and frequency states, and cores are
/// synchronised. Calibrated once against CLOCK_MONOTONIC_RAW, whose origin it takes: it agrees with RawMonotonicClock,
/// and with the TscClock of another process on the machine, up to the error of calibration (some parts per million of
/// the time since). Immutable, so free to share and to copy. Reads are not serialising: the processor may read some
/// instructions early or late.
class TscClock final : public Clock {
 public:
  /// Sleeps for `calibration_ns` between two readings of both clocks; the longer, the more exact (the readings are good
  /// to some 50 ns). Errors: unsupported, with the reason.
  static base::Result<TscClock> calibrate(std::int64_t calibration_ns = 10'000'000);

  /// The raw counter, as trace probes store it.
  static std::uint64_t ticks() noexcept;

  std::int64_t ticks_to_ns(std::uint64_t ticks) const noexcept { return scale_.to_ns(ticks); }
  std::int64_t now_ns() const noexcept override { return scale_.to_ns(ticks()); }
  const TickScale& scale() const noexcept { return scale_; }

 private:
  explicit TscClock(const TickScale& scale) noexcept : scale_(scale) {}
  TickScale scale_;
};

}  // namespace tandem::clock
