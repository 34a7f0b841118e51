// tools/trace_stats.hpp: which events a trace holds: how many of each type, when, of which actors, and the cost of recording.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/json_report.hpp"
#include "tools/trace_command.hpp"

namespace tandem::tools {

struct StatsOptions {
  std::size_t bins = 40;
  /// What recording an event costs its program (tandem/trace/stream.hpp; `tandem bench trace` of one's own machine says better):
  /// most of it is the reading of the clock, which events that follow at once from one before do without.
  double event_ns = 10;
  double same_stamp_ns = 2;
};

struct EventCount {
  std::uint64_t events = 0;
  std::uint64_t same_stamp = 0;  ///< of them, with the stamp of the event before
  std::uint64_t bytes = 0;       ///< of their records
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
  std::uint64_t stream_bytes = 0;  ///< of files: the records, and headers of packets
  std::int64_t start_ns = 0, duration_ns = 0;
  std::vector<EventCount> types;  ///< by number
  std::vector<const trace::EventSpec*> specs;  ///< of all types, those that the program has declared among them; of the run
  std::array<EventCount, trace::kCategories> categories = {};
  std::vector<Actor> actors;
  /// Events of each type by time; descriptions have none, and are in no bin.
  std::vector<std::vector<std::uint64_t>> bins;
};

/// One pass over all events. Errors: malformed.
base::Result<TraceStats> stats_of(trace::TraceReader& run, const StatsOptions& options);

}  // namespace tandem::tools
