// tandem/clock/tsc_clock.cpp: whether the TSC can be trusted, and its calibration.
#include "tandem/clock/tsc_clock.hpp"

#include <cmath>
#include <ctime>
#include <fstream>
#include <limits>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "tandem/base/assert.hpp"

namespace tandem::clock {
namespace {

#if defined(__x86_64__)
std::uint64_t read_tsc() noexcept { return __rdtsc(); }

/// Whether the processor reports it: advanced power management (leaf 0x80000007), EDX bit 8, "TscInvariant".
bool processor_says_invariant() noexcept {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(0x80000007U, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 8)) != 0;
}
#else
std::uint64_t read_tsc() noexcept { return 0; }
bool processor_says_invariant() noexcept { return false; }
#endif

/// Whether Linux distrusts the TSC: it takes it off this list when the cores' counters disagree. A system without a
/// list does not.
bool kernel_has_doubts() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/available_clocksource");
  if (!file) return false;
  for (std::string source; file >> source;)
    if (source == "tsc") return false;
  return true;
}

struct Reading {
  std::uint64_t ticks;
  std::int64_t ns;
};

/// Both clocks at one instant: the kernel's clock between two reads of the TSC, the tightest pair of several, so that
/// an interrupt in between does no harm.
Reading read_both() {
  const RawMonotonicClock reference;
  Reading best{};
  std::uint64_t best_width = std::numeric_limits<std::uint64_t>::max();
  for (int attempt = 0; attempt < 20; ++attempt) {
    const std::uint64_t before = read_tsc();
    const std::int64_t ns = reference.now_ns();
    const std::uint64_t width = read_tsc() - before;
    if (width < best_width) {
      best_width = width;
      best = {before + width / 2, ns};
    }
  }
  return best;
}

void sleep_ns(std::int64_t duration_ns) {
  const timespec duration{duration_ns / 1'000'000'000, duration_ns % 1'000'000'000};
  nanosleep(&duration, nullptr);  // a signal shortens the calibration; the readings remain true
}

}  // namespace

TickScale TickScale::through(std::uint64_t early_ticks, std::int64_t early_ns, std::uint64_t late_ticks,
                             std::int64_t late_ns) {
  TANDEM_ASSERT(late_ticks > early_ticks);
  const double ns_per_tick = static_cast<double>(late_ns - early_ns) / static_cast<double>(late_ticks - early_ticks);
  return {early_ticks, early_ns, static_cast<std::int64_t>(std::llround(std::ldexp(ns_per_tick, 32)))};
}

std::uint64_t TscClock::ticks() noexcept { return read_tsc(); }

base::Result<TscClock> TscClock::calibrate(std::int64_t calibration_ns) {
  if (!processor_says_invariant())
    return base::Error{base::ErrorCode::unsupported, "this processor has no invariant TSC"};
  if (kernel_has_doubts())
    return base::Error{base::ErrorCode::unsupported, "the kernel does not trust this machine's TSC"};
  const Reading early = read_both();
  sleep_ns(calibration_ns);
  const Reading late = read_both();
  if (late.ticks <= early.ticks || late.ns <= early.ns) {
    return base::Error{base::ErrorCode::unsupported, "the TSC stood still or ran backwards during its calibration"};
  }
  return TscClock(TickScale::through(early.ticks, early.ns, late.ticks, late.ns));
}

}  // namespace tandem::clock
