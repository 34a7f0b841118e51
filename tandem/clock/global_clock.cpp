// tandem/clock/global_clock.cpp: the line, its inverse, its error, and the composition of two.
#include "tandem/clock/global_clock.hpp"

#include <algorithm>
#include <cmath>

namespace tandem::clock {
namespace {

/// Limit of errors, so that sums of them never overflow: 29 years.
constexpr double kMostError = 9e17;
/// Rounds up to a nanosecond, and adds one for the rounding of the time itself.
std::int64_t rounded_error(double error_ns) noexcept {
  return static_cast<std::int64_t>(std::ceil(std::min(error_ns, kMostError))) + 1;
}

double error_after(const GlobalClock::Terms& terms, double elapsed_ns) noexcept {
  return terms.error_ns + terms.error_rate * std::abs(elapsed_ns) + terms.error_bend * elapsed_ns * elapsed_ns / 2;
}

}  // namespace

GlobalClock GlobalClock::between(const TickScale& ours, const TickScale& theirs, std::uint64_t ticks) noexcept {
  const std::int64_t our_ns = ours.to_ns(ticks);
  // Each scale rounds down to a nanosecond; the quotient of the multipliers is right to 2e-16.
  return GlobalClock(
      {.origin_ns = our_ns,
       .offset_ns = theirs.to_ns(ticks) - our_ns,
       .rate = static_cast<double>(theirs.multiplier - ours.multiplier) / static_cast<double>(ours.multiplier),
       .error_ns = 2});
}

GlobalTime GlobalClock::to_global(std::int64_t local_ns) const noexcept {
  const auto elapsed_ns = static_cast<double>(local_ns - terms_.origin_ns);
  return {local_ns + terms_.offset_ns + std::llrint(terms_.rate * elapsed_ns),
          rounded_error(error_after(terms_, elapsed_ns))};
}

GlobalTime GlobalClock::to_local(std::int64_t global_ns) const noexcept {
  // With u = global - (t0 + offset): s = u / (1 + rate) = u - u rate / (1 + rate); the second form keeps all digits of
  // u.
  const std::int64_t shifted_ns = global_ns - terms_.offset_ns;
  const auto global_elapsed_ns = static_cast<double>(shifted_ns - terms_.origin_ns);
  const double correction_ns = global_elapsed_ns * terms_.rate / (1 + terms_.rate);
  const double error_ns = error_after(terms_, global_elapsed_ns - correction_ns);
  // An error of E in global time is one of E / (1 + true rate) in ours, and the true rate is within e' and what a adds
  // of ours.
  const double stretch =
      1 + std::abs(terms_.rate) + terms_.error_rate + terms_.error_bend * std::abs(global_elapsed_ns);
  return {shifted_ns - std::llrint(correction_ns), rounded_error(error_ns * stretch * stretch)};
}

std::int64_t GlobalClock::error_at(std::int64_t local_ns) const noexcept {
  return rounded_error(error_after(terms_, static_cast<double>(local_ns - terms_.origin_ns)));
}

GlobalClock GlobalClock::around(std::int64_t origin_ns) const noexcept {
  const auto moved_ns = static_cast<double>(origin_ns - terms_.origin_ns);
  const double shift_ns = terms_.rate * moved_ns;
  const std::int64_t whole_ns = std::llrint(shift_ns);
  Terms terms = terms_;
  terms.origin_ns = origin_ns;
  terms.offset_ns += whole_ns;
  terms.error_ns = error_after(terms_, moved_ns) + std::abs(shift_ns - static_cast<double>(whole_ns));
  terms.error_rate += terms.error_bend * std::abs(moved_ns);
  return GlobalClock(terms);
}

GlobalClock GlobalClock::then(const GlobalClock& next) const noexcept {
  const Terms& first = terms_;
  const Terms second = next.around(first.origin_ns + first.offset_ns).terms_;
  const double speed = 1 + first.rate;
  const double spread = 1 + std::abs(second.rate) + second.error_rate;
  return GlobalClock({.origin_ns = first.origin_ns,
                      .offset_ns = first.offset_ns + second.offset_ns,
                      .rate = first.rate + second.rate + first.rate * second.rate,
                      .error_ns = first.error_ns * spread + second.error_ns,
                      .error_rate = first.error_rate * spread + second.error_rate * speed,
                      .error_bend = first.error_bend * spread + second.error_bend * speed * speed});
}

}  // namespace tandem::clock
