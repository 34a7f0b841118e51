// tandem/sim_rank/virtual_clock.hpp: what a simulated rank tells the clock that its program reads.
#pragma once

#include <cstdint>

namespace tandem::sim {

/// The virtual time of the process. Functions are called by the program's main thread alone, but for `now_ns`.
struct VirtualClock {
  std::int64_t (*now_ns)(void* context) = nullptr;   ///< as another thread sees it
  std::int64_t (*read_ns)(void* context) = nullptr;  ///< after `clock_reading_ns`
  void (*sleep_until)(void* context, std::int64_t when_ns) = nullptr;
  void* context = nullptr;
};

/// What reading a clock takes.
inline constexpr std::int64_t clock_reading_ns = 25;

/// Variables of the process that the clock's module reads.
inline constexpr const char* epoch_variable = "TANDEM_SIMULATION_EPOCH_NS";  ///< the date at which virtual time is 0

/// The only function of the module that is not the C library's: from now on its clocks show this time; null: they stand
/// still. Returns the time in ns for which the program has slept before.
using ConnectVirtualClock = std::int64_t(const VirtualClock* clock);
inline constexpr const char* connect_virtual_clock = "tandem_connect_virtual_clock";

}  // namespace tandem::sim
