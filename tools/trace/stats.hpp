// tools/trace/stats.hpp: counts the events of a trace by type, time and actor, and estimates the cost of recording.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/json/json_report.hpp"
#include "tools/trace/command.hpp"

namespace tandem::tools {

struct StatsOptions {
  std::size_t bins = 40;
  /// The cost of recording an event (tandem/trace/stream.hpp; `tandem bench trace` measures it on this machine). Most
  /// of it is the reading of the clock, which an event that directly follows another one avoids.
  double event_ns = 10;
  double same_stamp_ns = 2;
};

struct EventCount {
  std::uint64_t events = 0;
  std::uint64_t same_stamp = 0;  ///< events with the stamp of the event before
  std::uint64_t bytes = 0;       ///< size of the records
  double cost_ns = 0;            ///< estimated

  EventCount& operator+=(const EventCount& other) noexcept;
};

struct TraceStats {
  struct Actor {
    std::uint32_t rank = 0, actor = 0;
    std::string name;
    EventCount count;
    std::uint64_t lost_events = 0;
    std::uint64_t stream_bytes = 0;
  };

  EventCount all;
  std::uint64_t stream_bytes = 0;  ///< size of files: records and headers of packets
  std::int64_t start_ns = 0, duration_ns = 0;
  std::vector<EventCount> types;  ///< by number
  std::vector<const trace::EventSpec*> specs;  ///< of all types, also the program's own; owned by the run
  std::array<EventCount, trace::kCategories> categories = {};
  std::vector<Actor> actors;
  /// Events of each type by time; descriptions have no time, and are in no bin.
  std::vector<std::vector<std::uint64_t>> bins;
};

/// Counts in one pass over all events. Errors: malformed.
base::Result<TraceStats> stats_of(trace::TraceReader& run, const StatsOptions& options);

}  // namespace tandem::tools
