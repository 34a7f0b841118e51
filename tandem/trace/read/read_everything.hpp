// tandem/trace/read/read_everything.hpp: for tests, calls all queries of a trace.
#pragma once

#include <cstdint>
#include <filesystem>

#include "tandem/trace/read/reader.hpp"

namespace tandem::trace::test {

/// Returns the number of events that were read; 0: the trace cannot be opened.
inline std::uint64_t read_everything(const std::filesystem::path& run) {
  auto opened = TraceReader::open(run);
  if (!opened) return 0;
  std::uint64_t events = 0;
  TraceReader& trace = *opened.value();
  for (const auto& rank : trace.ranks) {
    const ReferenceLine line = rank->line();
    for (const auto& stream : rank->streams) {
      stream->rewind();
      for (;;) {
        const auto event = stream->next();
        if (!event || !event.value()) break;
        (void)event.value()->described();
        (void)line.to_reference(event.value()->local_ns);
        ++events;
      }
    }
  }
  (void)trace.in_order([](const Event& event) { return event.local_ns; },
                       [](const Event&, std::int64_t) { return true; });
  return events;
}

}  // namespace tandem::trace::test
