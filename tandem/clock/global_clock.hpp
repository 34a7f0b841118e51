// tandem/clock/global_clock.hpp: another clock's time as a function of ours, with a bound on the error; and chains of
// such functions.
//
// Mathematics. Around an origin t0 of our clock, with s = t - t0, the other clock shows
//
//     G(t) = t + offset + rate s,    wrong by at most    E(t) = e + e' |s| + a s^2 / 2,                                     (1)
//
// e from the measurement, e' from what is not known of the rate, a from how much the rate itself may change. Around
// another origin t1 = t0 + d the same function has  offset + rate d  and  e + e'|d| + a d^2/2,  e' + a|d|,  a
// (triangle inequality).
//   (2)
//
// If G1 leads from our clock to a parent's and G2 from the parent's to the reference, then G = G2 . G1. With G2 around
// the parent's time of t0, and s2 = (1 + rate1) s the parent's time since then:
//
//     offset = offset1 + offset2,    rate = rate1 + rate2 + rate1 rate2,                                                    (3)
//     E(t) = E1(t) (1 + |rate2| + e2') + E2(t0 + s2):   errors add along a path.                                            (4)
#pragma once

#include <cstdint>

#include "tandem/clock/tsc_clock.hpp"

namespace tandem::clock {

/// An instant as another clock shows it: `ns`, wrong by at most `error_ns`.
struct GlobalTime {
  std::int64_t ns = 0;
  std::int64_t error_ns = 0;

  friend bool operator==(const GlobalTime&, const GlobalTime&) = default;
};

/// Equation (1) as a value of 48 bytes: free to copy and to send. The default one is the identity, without error.
class GlobalClock {
 public:
  struct Terms {
    std::int64_t origin_ns = 0;  ///< t0
    std::int64_t offset_ns = 0;
    double rate = 0;             ///< ns per ns of ours, beyond 1
    double error_ns = 0;         ///< e
    double error_rate = 0;       ///< e', ns per ns
    double error_bend = 0;       ///< a, ns per ns^2: per second it is the change of rate divided by 10^9
  };

  constexpr GlobalClock() noexcept = default;
  constexpr explicit GlobalClock(const Terms& terms) noexcept : terms_(terms) {}

  /// Two scales of one counter: exact but for rounding. `ours` becomes `theirs`, around `ticks`.
  static GlobalClock between(const TickScale& ours, const TickScale& theirs, std::uint64_t ticks) noexcept;

  /// The other clock's time when ours shows `local_ns`; before the origin too. Some nanoseconds; rounding is in the
  /// error.
  GlobalTime to_global(std::int64_t local_ns) const noexcept;
  /// Our time when the other clock shows `global_ns`.
  GlobalTime to_local(std::int64_t global_ns) const noexcept;
  /// The error of `to_global`.
  std::int64_t error_at(std::int64_t local_ns) const noexcept;

  /// This function around another origin, with a bound that is nowhere smaller: equation (2).
  GlobalClock around(std::int64_t origin_ns) const noexcept;
  /// The function from our clock through the other one to the target of `next`: equations (3) and (4).
  GlobalClock then(const GlobalClock& next) const noexcept;

  const Terms& terms() const noexcept { return terms_; }
  /// Whether the error does not grow with time.
  bool exact() const noexcept { return terms_.error_rate == 0 && terms_.error_bend == 0; }

 private:
  Terms terms_;
};

static_assert(sizeof(GlobalClock) == 48);

}  // namespace tandem::clock
