// tandem/trace/metadata.hpp: a rank's trace described for CTF's readers (babeltrace2, Trace Compass), in TSDL.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tandem/clock/tsc_clock.hpp"
#include "tandem/trace/clock_point.hpp"
#include "tandem/trace/declared.hpp"

namespace tandem::trace {

/// A clock as CTF can describe it: date = offset_s seconds + (offset_ticks + ticks) / frequency_hz seconds since 1970.
struct CtfClock {
  std::uint64_t frequency_hz = 1'000'000'000;
  std::int64_t offset_s = 0;
  std::uint64_t offset_ticks = 0;  ///< less than a second's

  friend bool operator==(const CtfClock&, const CtfClock&) = default;
};

/// The facts about a rank's clock that metadata needs.
struct ClockFacts {
  clock::TickScale scale = {};          ///< ticks to the rank's own clock
  std::int64_t realtime_ns = 0;  ///< the system's date (since 1970) when the rank's clock showed `realtime_local_ns`
  std::int64_t realtime_local_ns = 0;
  ReferenceLine line = {};              ///< to rank 0's clock
  /// Date minus rank 0's clock, so that all ranks of a run show one date; without it this rank's own date is used.
  std::optional<std::int64_t> reference_realtime_offset_ns = std::nullopt;
  /// Ticks at which the description is exact. CTF's frequencies are whole Hz, so it errs elsewhere: at 2 GHz by 0.25 ns
  /// per second of distance. The middle of the trace is best; its first event is good enough.
  std::uint64_t exact_at_ticks = 0;
};
CtfClock ctf_clock(const ClockFacts& facts);

struct MetadataOptions {
  std::string hostname;
  std::string program;
  std::uint32_t rank = 0;
  std::string tandem_version;
  CtfClock clock = {};
  const DeclaredTypes* declared = nullptr;  ///< by the program; null: none
};

/// The file `metadata` of one rank: packets as in packet.hpp, events as in event.hpp. Field names get an underscore in
/// front, since some are keywords of TSDL; readers remove it.
std::string ctf_metadata(const MetadataOptions& options);

}  // namespace tandem::trace
